# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Packages of a Debian suite that the machine's apt need not know; sourced by get-kernel.sh and get-siw.sh. The list of sources and
# the lists of packages are in $cache: no file of the machine's apt is changed, and its own lists are not used. Its settings are,
# a proxy for one. The sourcing script defines skip(), which ends it.

# The suite's full name: "backports" is that of this machine's release. Empty: none, the machine's own sources.
suite_name()
{
    local ID='' VERSION_CODENAME=''
    case $1 in
    backports)
        . /etc/os-release
        [ "$ID" = debian ] && [ -n "$VERSION_CODENAME" ] || skip "KERNEL_SUITE=backports is for Debian, this is ${ID:-no Linux distribution known here}"
        echo "$VERSION_CODENAME-backports"
        ;;
    '' | *-backports) echo "$1" ;;
    *) skip "KERNEL_SUITE=$1 is no suite that is known here; backports is" ;;
    esac
}

# The mirror that the machine uses.
mirror()
{
    local uri
    uri=$(apt-cache policy 2>/dev/null | sed -n "s,^ *[0-9]* \(http[^ ]*\) ${1%-backports}/main amd64 .*,\1,p" | head -n 1)
    echo "${uri:-http://deb.debian.org/debian}"
}

# From here on apt-get and apt-cache of this script know this suite and nothing else.
use_suite()
{
    local dir=$cache/apt-$1 keys=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -f $keys ] || skip "no $keys (Debian package debian-archive-keyring)"
    mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" || skip "cannot write $dir"
    echo "deb [signed-by=$keys arch=amd64] $(mirror "$1") $1 main" >"$dir/sources.list"
    printf '%s "%s";\n' Dir::Etc::sourcelist "$dir/sources.list" Dir::Etc::sourceparts - \
        Dir::State::lists "$dir/lists" Dir::Cache "$dir/cache" APT::Sandbox::User root >"$dir/apt.conf"
    export APT_CONFIG=$dir/apt.conf
    apt-get -q update >"$dir/log" 2>&1 && ! grep -q '^[EW]: ' "$dir/log" ||
        skip "apt-get update for $1: $(grep -m 1 '^[EW]: ' "$dir/log")"
}
