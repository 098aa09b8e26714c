#include "stagecraft/base/process/standard_lack_of_memory.h"

#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns the error that the exception becomes, or nothing.
std::optional<std::string> told(const std::exception& thrown) {
  const auto error = standard_lack_of_memory(thrown, "use fewer");
  if (!error) {
    return std::nullopt;
  }
  CHECK(error->code() == Errc::DeviceOutOfMemory);
  return error->message();
}

TEST_CASE("exceptions of the standard library that mean a lack of memory become an error",
          "[base][memory]") {
  CHECK(told(std::bad_alloc()) == "memory ran out: use fewer");
  try {
    std::vector<char> all;
    all.reserve(all.max_size() + 1);
    FAIL("no memory has so many bytes");
  } catch (const std::exception& error) {
    CHECK(told(error) == "memory ran out: use fewer");
  }
  const std::string at_thread = "memory ran out when a thread was to be made: use fewer";
  for (const std::errc code :
       {std::errc::resource_unavailable_try_again, std::errc::not_enough_memory}) {
    CHECK(told(std::system_error(std::make_error_code(code))) == at_thread);
  }
}

TEST_CASE("other exceptions do not mean a lack of memory", "[base][memory]") {
  CHECK_FALSE(told(std::runtime_error("no memory")));
  CHECK_FALSE(told(std::system_error(std::make_error_code(std::errc::permission_denied))));
  CHECK_FALSE(told(Error(Errc::UsageFile, "not found")));
}

}  // namespace
TEST_CASE("LibTorch says that memory ran out at the beginning of its message", "[base]") {
  CHECK(says_lack_of_memory("[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator"));
  CHECK(says_lack_of_memory("Storage size calculation overflowed with sizes=[2, 3]"));
  CHECK_FALSE(says_lack_of_memory("line 3 says: Could not allocate memory"));
  CHECK_FALSE(says_lack_of_memory(""));
}

}  // namespace stagecraft
