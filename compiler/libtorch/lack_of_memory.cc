#include "stagecraft/compiler/libtorch/lack_of_memory.h"

#include <charconv>
#include <string>
#include <string_view>
#include <system_error>

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/process/standard_lack_of_memory.h"

namespace stagecraft {
namespace {

/// Returns " at 1.5 GiB in one piece", or nothing.
std::string size_in(std::string_view text) {
  constexpr std::string_view kBefore = "you tried to allocate ";
  const std::size_t begin = text.find(kBefore);
  if (begin == std::string_view::npos) {
    return "";
  }
  text.remove_prefix(begin + kBefore.size());
  double bytes = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), bytes);
  return read.ec == std::errc() ? fmt::format(" at {} in one piece", bytes_text(bytes)) : "";
}

/// Returns the part with sizes of "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ... is
/// free. Including non-PyTorch memory, ...". Advice for Python follows.
std::string_view sizes_in(std::string_view text) {
  return text.substr(0, text.find(" Including non-PyTorch memory"));
}

}  // namespace

std::optional<Error> lack_of_memory(const std::exception& thrown, std::string_view what_to_do) {
  const auto* torch = dynamic_cast<const c10::Error*>(&thrown);
  if (torch == nullptr) {
    return standard_lack_of_memory(thrown, what_to_do);
  }
  const std::string text = torch->what_without_backtrace();
  if (dynamic_cast<const c10::OutOfMemoryError*>(torch) == nullptr && !says_lack_of_memory(text)) {
    return std::nullopt;
  }
  Error error(Errc::DeviceOutOfMemory,
              fmt::format("memory ran out{}: {}", size_in(text), what_to_do));
  if (!says_lack_of_memory(text)) {
    error.because(Error(Errc::DeviceOutOfMemory, std::string(sizes_in(text))));
  }
  return error;
}

}  // namespace stagecraft
