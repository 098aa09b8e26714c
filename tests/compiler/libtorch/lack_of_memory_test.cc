#include "stagecraft/compiler/libtorch/lack_of_memory.h"

#include <limits>
#include <string>
#include <system_error>
#include <vector>

#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the message that `work` throws if it is lack of memory.
template <class Work>
std::string told(Work&& work) {
  try {
    work();
  } catch (const std::exception& thrown) {
    const auto lack = lack_of_memory(thrown, "do less");
    if (!lack) {
      return "something else";
    }
    CHECK(lack->code() == Errc::DeviceOutOfMemory);
    CHECK_THAT(lack->message(),
               ContainsSubstring("memory ran out") && ContainsSubstring(": do less"));
    return lack->message();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a tensor for which there is no memory is lack of memory", "[compiler][memory]") {
  // The sizes are more than any machine has, and more than a 64-bit number can hold.
  CHECK_THAT(told([] { (void)at::empty({std::int64_t{1} << 50}, at::kByte); }),
             ContainsSubstring("at 1.0 PiB in one piece"));
  CHECK_THAT(told([] {
               (void)at::empty({std::int64_t{1} << 50, 1 << 20}, at::kFloat);
             }),
             ContainsSubstring("memory ran out"));
}

TEST_CASE("exceptions of the standard library for lack of memory count as well",
          "[compiler][memory]") {
  CHECK_THAT(told([] { throw std::bad_alloc(); }), ContainsSubstring("memory ran out"));
  CHECK_THAT(told([] { std::vector<char>().reserve(std::numeric_limits<std::size_t>::max()); }),
             ContainsSubstring("memory ran out"));
  CHECK_THAT(
      told([] {
        throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
      }),
      ContainsSubstring("when a thread was to be made"));
}

TEST_CASE("lack of an accelerator's memory says what its allocator says about sizes",
          "[compiler][memory]") {
  // As LibTorch's CUDA allocator throws it.
  const std::string sizes =
      "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.11 GiB of "
      "which 1.43 GiB is free.";
  try {
    TORCH_CHECK_WITH(OutOfMemoryError,
                     false,
                     sizes,
                     " Including non-PyTorch memory, this process has 77.67 GiB memory in use.");
  } catch (const std::exception& thrown) {
    const auto lack = lack_of_memory(thrown, "do less");
    REQUIRE(lack);
    CHECK(lack->message() == "memory ran out: do less");
    REQUIRE(lack->cause() != nullptr);
    CHECK(lack->cause()->message() == sizes);
  }
}

TEST_CASE("other failures are not lack of memory", "[compiler][memory]") {
  CHECK(told([] { (void)at::empty({-1}); }) == "something else");
  CHECK(told([] { throw std::runtime_error("no memory of it"); }) == "something else");
  CHECK(told([] { throw Error(Errc::UsageFile, "x"); }) == "something else");
  // A file chooses the names of its records.
  CHECK(told([] {
          TORCH_CHECK(false,
                      "failed to read the record [enforce fail at alloc_cpu.cpp:1] allocate "
                      "memory: you tried to allocate 7 bytes");
        }) == "something else");
}

}  // namespace stagecraft
