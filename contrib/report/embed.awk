# SPDX-License-Identifier: BSD-3-Clause
# Text files as a C string, each without the line of its licence.
# usage: awk -v name=IDENTIFIER -f embed.awk FILE...
BEGIN { printf "#include \"contrib/report/write.h\"\nconst char %s[] =\n", name }
FNR == 1 && /SPDX-License-Identifier/ { next }
{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\\&")
    printf "    \"%s\\n\"\n", $0
}
END { print "    ;" }
