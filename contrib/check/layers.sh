#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Fails when an #include in common/ or conduit/ points upward or sideways, into another room's private header, or at a .c file, and
# when the library or the launcher reads a GASNET_ variable by itself. Fails too when two headers can be taken for each other: the floors
# of the library, softhca and the launcher have none of the same name, and no path names headers of two folders that compilers search.
# A folder may have floors of its own (transport/verbs): its files include headers of their own folder there and of lower floors.
# The plan is contrib/check/layers.txt. usage: layers.sh [top of the source tree]
set -u
cd "${1:-${top_srcdir:-$(dirname "$0")/../..}}" || exit 2

# Settings have one table, conduit/settings/settings.def, and one parser; the launcher takes both through run/environ.c.
if grep -rnE 'getenv\("GASNET_' conduit spawner --include='*.[ch]' | grep -vE '(tk|gasnett)_getenv\('; then
    echo "reads a setting past the table of settings.def"
    exit 1
fi

# once WHAT: reads lines "NAME FOLDER", complains about each name of two folders
once()
{
    sort | awk -v what="$1" '
        $1 == last { print $1 ": " what " in " folder " and " $2; failed = 1 }
        { last = $1; folder = $2; names++ }
        END { exit failed || names == 0 }'
}
# headers FOLDER...: a line "NAME FOLDER" for each header, named from that folder on
headers()
{
    for folder; do
        find "$folder" -name '*.h' | sed "s,^$folder/\(.*\),\1 $folder,"
    done
}
floors='common conduit/base contrib/softhca/support spawner/util'
searched='conduit contrib/softhca contrib/roce contrib/mcswitch'
ambiguous=0
for folder in $floors $searched; do
    [ -d "$folder" ] || { echo "no folder $folder: layers.sh looks for headers there"; ambiguous=1; }
done
# shellcheck disable=SC2086 # lists
headers $floors | once "headers of the same name" || ambiguous=1
# shellcheck disable=SC2086
headers $searched | once "an #include finds headers" || ambiguous=1
[ $ambiguous = 0 ] || exit 1

# One line per arrow: file, the room it is in, what it includes
find common conduit -name '*.[ch]' ! -path 'conduit/include/*' -exec grep -H '^# *include  *"' {} + |
    sed -E 's/^((conduit\/)?([a-z_]+)\/[^:]*):# *include +"([^"]*)".*/\1 \3 \4/' |
    awk -v plan=contrib/check/layers.txt '
        BEGIN {
            while ((getline line < plan) > 0) {
                if (line ~ /^#/ || line ~ /^in / || line == "")
                    continue
                level++
                rooms = split(line, room, " ")
                for (i = 1; i <= rooms; i++)
                    depth[room[i]] = level
            }
            if (level == 0) {
                print "no plan in " plan
                failed = 1
                exit
            }
        }
        function complain(why) {
            print $1 ": includes \"" $3 "\": " why
            failed = 1
        }
        {
            arrows++
            split($3, part, "/")
            to = part[1]
            if (!($2 in depth) && !($2 in told)) {
                print $1 ": room " $2 " is not in " plan
                told[$2] = failed = 1
            }
            if ($3 ~ /\.c$/)
                complain("a .c file")
            # Rooms above a transport use its table. The verbs objects of trunkline_rails.h are the exception.
            if ($3 ~ /^transport\/(self|shm|verbs)\// && $2 != "transport" && $2 != "start" &&
                !($1 == "conduit/api/rails.c" && $3 == "transport/verbs/raw/raw.h"))
                complain("only start/ knows which transports exist")
            # Public headers belong to no room.
            if (!($3 ~ /\//) || to == "gasnet-tools" || to == $2 || !($2 in depth))
                next
            if (!(to in depth))
                complain("no such room in " plan)
            else if ($3 ~ /_private\.h$/)
                complain("private to room " to)
            else if (depth[to] < depth[$2])
                complain("points up from " $2 " to " to)
            else if (depth[to] == depth[$2])
                complain("points sideways from " $2 " to " to)
        }
        END {
            if (!failed)
                print arrows " includes, none points up or sideways"
            exit failed
        }' || exit 1

# The floors inside a folder: each file has one, and each name of the plan is a file or a folder.
find conduit -name '*.[ch]' -exec grep -H '^# *include  *"' {} + | sed -E 's,^conduit/([^:]*):# *include +"([^"]*)".*,\1 \2,' |
    awk -v plan=contrib/check/layers.txt '
        BEGIN {
            while ((getline line < plan) > 0) {
                words = split(line, word, " ")
                if (word[1] != "in")
                    continue
                inside[word[2]] = 1
                level++
                for (i = 3; i <= words; i++)
                    floor_of[word[2] "/" word[i]] = level
            }
        }
        # The folder with floors that a file is in; "" for none
        function folder_of(file,    folder) {
            folder = file
            while (sub(/\/[^\/]*$/, "", folder))
                if (folder in inside)
                    return folder
            return ""
        }
        # The name in the plan that says most about a file
        function named(file,    name) {
            if (file in floor_of)
                return file
            name = file
            sub(/\.[ch]$/, "", name)
            while (!(name in floor_of))
                if (!sub(/\/[^\/]*$/, "", name))
                    return ""
            return name
        }
        function holder(file) {
            sub(/\/[^\/]*$/, "", file)
            return file
        }
        function place(file) {
            if (file in place_of)
                return
            place_of[file] = named(file)
            used[place_of[file]] = 1
            if (place_of[file] == "") {
                print "conduit/" file ": has no floor in " plan
                failed = 1
            }
        }
        {
            folder = folder_of($1)
            if (folder == "")
                next
            place($1)
            if (folder_of($2) != folder)
                next
            place($2)
            if (place_of[$1] == "" || place_of[$2] == "")
                next
            arrows++
            from = floor_of[place_of[$1]]
            to = floor_of[place_of[$2]]
            if (to > from || (to == from && holder($1) == holder($2)))
                next
            print "conduit/" $1 ": includes \"" $2 "\": points " (to == from ? "sideways" : "up") " from " place_of[$1] " to " place_of[$2]
            failed = 1
        }
        END {
            for (name in floor_of)
                if (!(name in used)) {
                    print plan ": no file is " name
                    failed = 1
                }
            if (!failed)
                print arrows " includes inside folders with floors, none points up or sideways"
            exit failed || arrows == 0
        }'
