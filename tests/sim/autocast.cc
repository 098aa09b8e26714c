/// Autocast on simulated devices has the lists of operators that CUDA has, which are not the CPU's.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

namespace at::autocast {  // the names that LibTorch's macros expect
namespace {

#define SIM_LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define SIM_FLOAT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define SIM_OPTIONAL(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define SIM_WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
  AT_FORALL_LOWER_PRECISION_FP(SIM_LOWER)
  AT_FORALL_FP32(SIM_FLOAT)
  AT_FORALL_FP32_SET_OPT_DTYPE(SIM_OPTIONAL)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(SIM_WIDEST)
}

}  // namespace
}  // namespace at::autocast
