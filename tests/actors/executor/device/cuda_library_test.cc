/// Tests what a process says that cannot use CUDA. With a GPU only the second case has something to
/// say.
#include "stagecraft/actors/executor/device/cuda_library.h"

#include <filesystem>

#include <torch/torch.h>

#include "stagecraft/actors/executor/device/device_name.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string refusal_of(const std::function<void()>& use) {
  try {
    use();
  } catch (const Error& error) {
    CHECK(error.code() == Errc::UsageArgument);
    CHECK(error.option() == "device");
    return error.what();
  }
  return "";
}

TEST_CASE("CUDA without a driver is refused with what is missing", "[executor][device][alone]") {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    SKIP("this machine has an NVIDIA driver, so it lacks none");
  }
  const std::string refusal = refusal_of([] { (void)place_of("cuda", Rank(0)); });
  CHECK_THAT(refusal,
             ContainsSubstring("no NVIDIA driver is installed") ||
                 ContainsSubstring("libtorch_cuda.so is missing") ||
                 ContainsSubstring("LibTorch's CUDA part does not open"));
  CHECK(torch::ones({2}).sum().item<float>() == 2);  // the CPU still computes
}

TEST_CASE("CUDA that is opened after a backward is refused with what to do",
          "[executor][device][alone]") {
  const torch::Tensor weight = torch::ones({2}, torch::requires_grad());
  (weight * weight).sum().backward();
  const std::string refusal = refusal_of(open_cuda);
  CHECK_THAT(refusal,
             ContainsSubstring("call sc::open_cuda() first in main()") ||
                 ContainsSubstring("libtorch_cuda.so is missing") ||
                 ContainsSubstring("LibTorch's CUDA part does not open"));
  (weight * weight).sum().backward();
  CHECK(weight.grad().sum().item<float>() == 8);
}

}  // namespace
}  // namespace stagecraft
