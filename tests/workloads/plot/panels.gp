# SPDX-License-Identifier: BSD-3-Clause
# One picture of up to three panels from the blocks that workload-sweep wrote, which also sets: data, out, about, panels,
# bars, and for each panel title, under, x, y, numeric, first, last (blocks). A line of a block: x, median, "x", least, largest.
# An axis of numbers is logarithmic, for sweeps double.
set terminal svg size 420 * panels, 360 font "sans,11" background "#ffffff"
set output out
set multiplot layout 1, panels title about
set yrange [0:*]
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
set key below
do for [i = 1:panels] {
    set title value(sprintf("title%d", i)) . "\n{/*0.8 " . value(sprintf("under%d", i)) . "}"
    set xlabel value(sprintf("x%d", i))
    set ylabel value(sprintf("y%d", i))
    first = value(sprintf("first%d", i))
    last = value(sprintf("last%d", i))
    if (value(sprintf("numeric%d", i))) {
        set logscale x 2
        set xrange [*:*]
        set xtics autofreq
        set offsets graph 0.05, graph 0.05, 0, 0
        if (bars) {
            plot for [b = first:last] data index b using 1:2:4:5 with yerrorlines pt 7 ps 0.5 lw 2 title columnheader(1)
        } else {
            plot for [b = first:last] data index b using 1:2 with linespoints pt 7 ps 0.5 lw 2 title columnheader(1)
        }
    } else {
        unset logscale x
        set xrange [-0.5:*]
        set offsets 0, 0.5, 0, 0
        if (bars) {
            plot for [b = first:last] data index b using 1:2:4:5:xtic(3) with yerrorlines pt 7 ps 0.5 lw 2 title columnheader(1)
        } else {
            plot for [b = first:last] data index b using 1:2:xtic(3) with linespoints pt 7 ps 0.5 lw 2 title columnheader(1)
        }
    }
}
unset multiplot
