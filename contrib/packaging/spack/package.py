# SPDX-License-Identifier: BSD-3-Clause
from spack.package import *


class Trunkline(AutotoolsPackage):
    """GASNet-EX over InfiniBand and RoCE: a conduit for PGAS runtimes, with its launcher."""

    # A release tarball (make dist) in a local mirror, or a checkout by "spack dev-build trunkline@main".
    license("BSD-3-Clause")
    version("main")
    version("0.2.0")
    version("0.1.0")

    variant("debug", default=False, description="Check arguments, and the rules for handlers, locks and events")
    variant("segment", default="fast", values=("fast", "large", "everything"), multi=False,
            description="What of another rank's memory is within reach")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf", type="build", when="@main")
    depends_on("automake", type="build", when="@main")
    depends_on("pkgconfig", type="build")
    depends_on("rdma-core")
    depends_on("pmix@3:")
    depends_on("hwloc@2:")

    def configure_args(self):
        spec = self.spec
        args = ["--with-pmix=%s" % spec["pmix"].prefix, "--with-hwloc=%s" % spec["hwloc"].prefix,
                "--with-libibverbs=%s" % spec["rdma-core"].prefix, "--with-librdmacm=%s" % spec["rdma-core"].prefix]
        args += self.enable_or_disable("debug")
        if "+debug" not in spec:
            args.append("--enable-debug-twin")
        args += ["--enable-trace-twin", "--enable-mcswitch"]
        args.append("--enable-segment-%s" % spec.variants["segment"].value)
        return args
