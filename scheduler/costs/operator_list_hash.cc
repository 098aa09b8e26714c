#include "stagecraft/scheduler/costs/operator_list_hash.h"

#include <charconv>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/hash.h"

namespace stagecraft {
namespace {

constexpr std::size_t kHashDigits = 16;

template <class Number>
bool parse_all(std::string_view digits, int base, Number& number) {
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, number, base);
  return error == std::errc() && end == last;
}

}  // namespace

OperatorListHash hash_of_operators(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names) {
    text += name + '\n';
  }
  return {.operators = names.size(), .names = fnv1a(text)};
}

std::string to_string(const OperatorListHash& hash) {
  return fmt::format("{} {:016x}", hash.operators, hash.names);
}

std::optional<OperatorListHash> operator_list_hash_in(std::string_view text) {
  OperatorListHash hash;
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || text.size() - blank - 1 != kHashDigits ||
      !parse_all(text.substr(0, blank), 10, hash.operators) ||
      !parse_all(text.substr(blank + 1), 16, hash.names)) {
    return std::nullopt;
  }
  return hash;
}

}  // namespace stagecraft
