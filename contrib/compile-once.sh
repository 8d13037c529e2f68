#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# libtool, but a file is compiled once for the shared and the static library. With pic-only (configure.ac) both want the same object;
# libtool runs the compiler twice for it, which was a third of all compiling.
# usage: compile-once.sh SHELL LIBTOOL ARGUMENT...    (make's LIBTOOL is this with the first two)
case " $* " in
*" --mode=compile "*" -o "*.lo" "*) ;;
*) exec "$@" ;;
esac

lo=
previous=
for argument in "$@"; do
    [ "$previous" = -o ] && lo=$argument
    previous=$argument
done
"$@" -shared || exit
case $lo in
*/*) directory=${lo%/*} ;;
*) directory=. ;;
esac
object=${lo##*/}
object=${object%.lo}.o
# A hard link, or a copy where the file system has none. libtool removes .libs/*.o before it is compiled again, so no compiler writes
# into both.
ln -f "$directory/.libs/$object" "$directory/$object" 2>/dev/null || cp -f "$directory/.libs/$object" "$directory/$object" || exit
sed "s/^non_pic_object=none\$/non_pic_object='$object'/" "$lo" >"$lo.new" && mv -f "$lo.new" "$lo"
