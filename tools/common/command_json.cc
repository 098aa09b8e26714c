#include "stagecraft/tools/common/command_json.h"

#include <cstddef>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace stagecraft::tools {
namespace {

using OrderedObject = nlohmann::ordered_json;

constexpr int kJsonVersion = 1;

/// Escapes the control characters that the library leaves as they are. Keeps JO-2: outside of
/// strings JSON has none.
std::string with_escaped_controls(const std::string& json) {
  std::string out;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const auto byte = static_cast<unsigned char>(json[i]);
    const auto next = static_cast<unsigned char>(i + 1 < json.size() ? json[i + 1] : '\0');
    if (byte == 0x7FU) {
      out += "\\u007f";
    } else if (byte == 0xC2U && next < 0xA0U) {
      out += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      out += json[i];
    }
  }
  return out;
}

}  // namespace

std::string command_json(std::string_view command, const nlohmann::ordered_json& contents) {
  OrderedObject object{{"stagecraft", command}, {"version", kJsonVersion}};
  object.update(contents);
  return with_escaped_controls(
             object.dump(-1, ' ', false, OrderedObject::error_handler_t::replace)) +
         '\n';
}

}  // namespace stagecraft::tools
