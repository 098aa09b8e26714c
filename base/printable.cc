#include "stagecraft/base/printable.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

namespace stagecraft {
namespace {

bool continues(char c) {
  return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

/// Returns the bytes of the character that the text begins with; 0 if it begins with none.
std::size_t length_of_first(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80U                     ? 1
                             : lead >= 0xC2U && lead < 0xE0U  ? 2
                             : lead >= 0xE0U && lead < 0xF0U  ? 3
                             : lead >= 0xF0U && lead <= 0xF4U ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues(text[i])) {
      return 0;
    }
  }
  // Forms that are too long, halves of surrogates, and numbers beyond the last character.
  const bool wrong = (lead == 0xE0U && byte(1) < 0xA0U) || (lead == 0xEDU && byte(1) >= 0xA0U) ||
                     (lead == 0xF0U && byte(1) < 0x90U) || (lead == 0xF4U && byte(1) >= 0x90U);
  return wrong ? 0 : length;
}

/// U+0080 to U+009F are control characters too: some terminals take U+009B for the escape "ESC [".
bool is_control(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character.front());
  return lead < 0x20U || lead == 0x7FU ||
         (lead == 0xC2U && static_cast<unsigned char>(character[1]) < 0xA0U);
}

}  // namespace

std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = length_of_first(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    const bool is_kept = kept.find(character.front()) != std::string_view::npos;
    if (length == 0 || (is_control(character) && !is_kept)) {
      for (const char c : character) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      }
    } else {
      out += character;
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string_view beginning_of(std::string_view text, std::size_t bytes) {
  std::size_t end = std::min(text.size(), bytes);
  while (end > 0 && end < text.size() && continues(text[end])) {
    --end;
  }
  return text.substr(0, end);
}

}  // namespace stagecraft
