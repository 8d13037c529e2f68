/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The report of trunkline_info on accelerators that this host does not have: places on synthetic
 * machines, sizes of BARs, files without permission, and each finding with its remedy. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "contrib/info/accelerators.h"
#include "contrib/info/info.h"
#include "kind/kind_class.h"
#include "unit.h"

/* ---- findings are kept ---- */

static struct {
    enum info_grade grade;
    char text[1000];
} said[8];
static unsigned said_count;

void info_finding(enum info_grade grade, const char *format, ...)
{
    va_list arguments;
    assert_true(said_count < 8);
    va_start(arguments, format);
    vsnprintf(said[said_count].text, sizeof(said[0].text), format, arguments);
    va_end(arguments);
    said[said_count++].grade = grade;
}

static void assert_said(enum info_grade grade, const char *text)
{
    for (unsigned i = 0; i < said_count; i++)
        if (said[i].grade == grade && strstr(said[i].text, text))
            return;
    fail_msg("no finding of grade %d with '%s' among %u; the first: %s", grade, text, said_count,
             said_count ? said[0].text : "");
}

static unsigned count_not_good(void)
{
    unsigned count = 0;
    for (unsigned i = 0; i < said_count; i++)
        count += said[i].grade != INFO_GOOD;
    return count;
}

/* All is well. */
static struct info_accelerator a;

static int set_up(void **state)
{
    (void)state;
    a = (struct info_accelerator){.gex_class = TK_KIND_CUDA_UVA,
                                  .text = "CUDA_UVA device 0 (Paper)",
                                  .memory = (uint64_t)80 << 30,
                                  .bar = (uint64_t)128 << 30,
                                  .has_memory = true,
                                  .ipc = {.works = true},
                                  .hca_count = 2};
    for (unsigned i = 0; i < 2; i++)
        a.hcas[i] = (struct info_hca){.ports = 1, .dmabuf = {.works = true}};
    strcpy(a.hcas[0].name, "mlx5_0");
    strcpy(a.hcas[1].name, "mlx5_1");
    a.hcas[0].used = 1 << 1;
    said_count = 0;
    return 0;
}

static void judge(const char *way)
{
    said_count = 0;
    info_judge_accelerator(&a, way);
}

static void fail_trial(struct info_trial *trial, int error, const char *why)
{
    *trial = (struct info_trial){.error = error};
    strcpy(trial->why, why);
}

static void nothing_is_to_be_mended_where_all_is_well(void **state)
{
    (void)state;
    judge("auto");
    assert_int_equal(count_not_good(), 0);
    assert_said(INFO_GOOD, "the HCAs in use access its memory in place");
    assert_said(INFO_GOOD, "its BAR covers all of its memory");
}

/* ---- paths ---- */

static void the_path_follows_trials_and_the_setting(void **state)
{
    struct info_hca *hca = &a.hcas[0];
    (void)state;
    assert_string_equal(info_accelerator_path(hca, "auto"), "in place, by dma-buf");
    assert_string_equal(info_accelerator_path(hca, "staged"), "staged through host memory");
    assert_string_equal(info_accelerator_path(hca, "ipc"), "staged through host memory");
    assert_null(info_accelerator_path(hca, "peermem"));
    hca->peermem.works = true;
    assert_string_equal(info_accelerator_path(hca, "peermem"), "in place, by peer memory");
    hca->dmabuf.works = false;
    assert_string_equal(info_accelerator_path(hca, "auto"), "in place, by peer memory");
    assert_null(info_accelerator_path(hca, "dmabuf"));
    hca->peermem.works = false;
    assert_string_equal(info_accelerator_path(hca, "auto"), "staged through host memory");
}

static void memory_that_no_hca_reaches_has_a_remedy(void **state)
{
    struct info_hca *hca = &a.hcas[0];
    (void)state;
    fail_trial(&hca->dmabuf, 0, "the driver exports none");
    fail_trial(&hca->peermem, EFAULT, "ibv_reg_mr: Bad address");
    judge("auto");
    assert_int_equal(count_not_good(), 1);
    assert_said(INFO_ADVICE, "because mlx5_0 reaches its memory neither by dma-buf (the driver "
                             "exports none) nor by peer memory (ibv_reg_mr: Bad address; "
                             "nvidia-peermem is not loaded); install CUDA 11.7");
    assert_said(INFO_ADVICE, "or load the module nvidia-peermem");
    a.has_peer_module = true;
    judge("auto");
    assert_null(strstr(said[0].text, "nvidia-peermem"));
    fail_trial(&hca->dmabuf, EOPNOTSUPP, "ibv_reg_dmabuf_mr: Operation not supported");
    judge("auto");
    assert_said(INFO_ADVICE, "install rdma-core 34 and Linux 5.12");
    fail_trial(&hca->dmabuf, ENOMEM, "ibv_reg_dmabuf_mr: Cannot allocate memory");
    judge("auto");
    assert_said(INFO_ADVICE, "the BAR of the accelerator is full");
    a.gex_class = TK_KIND_HIP;
    fail_trial(&hca->dmabuf, 0, "no function");
    judge("auto");
    assert_said(INFO_ADVICE, "install ROCm 5.3 or later");
    a.gex_class = TK_KIND_ZE;
    judge("auto");
    assert_said(INFO_ADVICE, "a kernel whose driver of the accelerator exports dma-bufs");
}

/* An unused device does not affect the result. */
static void a_setting_that_cannot_be_met_is_wrong(void **state)
{
    (void)state;
    fail_trial(&a.hcas[0].peermem, EFAULT, "ibv_reg_mr: Bad address");
    judge("peermem");
    assert_said(INFO_WRONG, "gex_Segment_Create() fails under this GASNET_MK_WAY");
    assert_said(INFO_WRONG, "set GASNET_MK_WAY=auto");
    judge("staged");
    assert_int_equal(count_not_good(), 0);
    a.hcas[1].dmabuf.works = false;
    judge("auto");
    assert_int_equal(count_not_good(), 0);
}

/* ---- BAR, place, IPC, devices that fail ---- */

static void a_small_bar_is_told_with_sizes(void **state)
{
    (void)state;
    a.memory = (uint64_t)24 << 30;
    a.bar = 256 << 20;
    judge("auto");
    assert_said(INFO_ADVICE, "its BAR has 256 MiB for 24576 MiB of memory");
    assert_said(INFO_ADVICE, "Resizable BAR");
    a.bar = 0;
    judge("auto");
    assert_int_equal(count_not_good(), 0);
}

static void an_hca_at_another_socket_is_told(void **state)
{
    (void)state;
    a.hcas[0].place = a.hcas[1].place = INFO_PLACE_OTHER;
    judge("auto");
    assert_said(INFO_ADVICE, "all HCAs (mlx5_0) are at another socket");
    a.hcas[1].place = INFO_PLACE_SWITCH;
    judge("auto");
    assert_int_equal(count_not_good(), 1);
    assert_said(INFO_ADVICE, "the HCA in use (mlx5_0) is at another socket, and mlx5_1 is nearer");
    assert_said(INFO_ADVICE, "GASNET_IBV_PORTS_TYPE=auto");
    a.hcas[1].used = 1 << 1;
    judge("auto");
    assert_int_equal(count_not_good(), 0);
}

static void ipc_that_lacks_is_advice_where_the_library_has_it(void **state)
{
    (void)state;
    fail_trial(&a.ipc, 0, "not supported");
    judge("auto");
    assert_said(INFO_ADVICE, "no handle of its memory to other processes (not supported)");
    a.gex_class = TK_KIND_ZE;
    judge("auto");
    assert_int_equal(count_not_good(), 0);
}

static void a_device_that_fails_is_wrong(void **state)
{
    (void)state;
    a.has_memory = false;
    strcpy(a.why_not, "cuMemAlloc of 65536 bytes: out of memory");
    judge("auto");
    assert_int_equal(said_count, 1);
    assert_said(INFO_WRONG, "it can't be used (cuMemAlloc of 65536 bytes: out of memory)");
    said_count = 0;
    info_judge_driver(TK_KIND_CUDA_UVA, "libcuda.so.1", NULL, "cuInit: no device");
    assert_int_equal(said_count, 0);
    info_judge_driver(TK_KIND_CUDA_UVA, "libcuda.so.1", "/dev/nvidia0", "cuInit: mismatch");
    assert_said(INFO_WRONG, "libcuda.so.1 and /dev/nvidia0 are there, but no device can be used "
                            "(cuInit: mismatch)");
}

/* ---- the host ---- */

static void use_machine(const char *file)
{
    char path[4096];
    const char *top = getenv("top_srcdir");
    snprintf(path, sizeof(path), "%s/tests/unit/topology/%s", top ? top : ".", file);
    setenv("HWLOC_XMLFILE", path, 1);
    info_place_drop();
}

static void places_are_those_of_hwloc(void **state)
{
    (void)state;
    use_machine("four-switches.xml");
    assert_int_equal(info_place_of("0000:13:00.0", "mlx5_0"), INFO_PLACE_SWITCH);
    assert_int_equal(info_place_of("0000:13:00.0", "mlx5_1"), INFO_PLACE_NODE);
    assert_int_equal(info_place_of("0000:13:00.0", "mlx5_2"), INFO_PLACE_OTHER);
    assert_int_equal(info_place_of("0000:13:00.0", "mlx5_9"), INFO_PLACE_UNKNOWN);
    assert_int_equal(info_place_of("0000:14:00.0", "mlx5_0"), INFO_PLACE_UNKNOWN);
    assert_int_equal(info_place_of("", "mlx5_0"), INFO_PLACE_UNKNOWN);
    info_place_drop();
}

static void the_largest_bar_counts(void **state)
{
    char path[] = "/tmp/trunkline-bar-XXXXXX";
    static const char resource[] = "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n"
                                   "0x00000000e0000000 0x00000000efffffff 0x000000000014220c\n"
                                   "0x0000000000000000 0x000000007fffffff 0x0000000000040101\n"
                                   "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, resource, sizeof(resource) - 1), sizeof(resource) - 1);
    close(fd);
    assert_int_equal(info_bar_size(path), 256 << 20);
    unlink(path);
    assert_int_equal(info_bar_size(path), 0);
}

/* Root may open all files, so the check is for the real user. */
static void a_file_without_permission_is_named(void **state)
{
    char folder[] = "/tmp/trunkline-dev-XXXXXX", mine[64], closed[64], pattern[64];
    const char *const patterns[] = {"/tmp/trunkline-none*", pattern, NULL};
    char first[256], denied[256];
    bool is_root = getuid() == 0;
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(mine, sizeof(mine), "%s/gpu0", folder);
    snprintf(closed, sizeof(closed), "%s/gpu1", folder);
    snprintf(pattern, sizeof(pattern), "%s/gpu*", folder);
    chmod(folder, 0755);
    close(creat(mine, 0666));
    close(creat(closed, 0600));
    chmod(mine, 0666);
    chmod(closed, is_root ? 0600 : 0);
    assert_true(!is_root || setreuid(65534, (uid_t)-1) == 0);
    info_device_files(patterns, first, denied, sizeof(first));
    assert_true(!is_root || setreuid(0, (uid_t)-1) == 0);
    assert_string_equal(first, mine);
    assert_string_equal(denied, closed);
    info_judge_files(TK_KIND_HIP, denied);
    assert_said(INFO_WRONG, "gpu1: gex_MK_Create() fails for class HIP; add the user to");
    chmod(closed, 0666);
    info_device_files(patterns, first, denied, sizeof(first));
    assert_string_equal(denied, "");
    info_device_files((const char *const[]){"/tmp/trunkline-none*", NULL}, first, denied,
                      sizeof(first));
    assert_string_equal(first, "");
    unlink(mine);
    unlink(closed);
    rmdir(folder);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

static const struct CMUnitTest tests[] = {
    TEST(nothing_is_to_be_mended_where_all_is_well),
    TEST(the_path_follows_trials_and_the_setting),
    TEST(memory_that_no_hca_reaches_has_a_remedy),
    TEST(a_setting_that_cannot_be_met_is_wrong),
    TEST(a_small_bar_is_told_with_sizes),
    TEST(an_hca_at_another_socket_is_told),
    TEST(ipc_that_lacks_is_advice_where_the_library_has_it),
    TEST(a_device_that_fails_is_wrong),
    TEST(places_are_those_of_hwloc),
    TEST(the_largest_bar_counts),
    TEST(a_file_without_permission_is_named),
};

UNIT_MAIN(tests)
