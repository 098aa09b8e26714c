#include "stagecraft/scheduler/builders/parts/build_request.h"

#include <charconv>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

template <class Number>
std::optional<Number> parsed(std::string_view word) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  const bool whole = error == std::errc() && end == word.data() + word.size();
  return whole ? std::optional(value) : std::nullopt;
}

int to_number(std::string_view name, std::string_view word) {
  const auto value = parsed<int>(word);
  if (!value) {
    throw Error(Errc::UsageArgument,
                fmt::format("parameter {} needs a whole number, got '{}'", name, word));
  }
  return *value;
}

double to_time(std::string_view name, std::string_view word) {
  const auto value = parsed<double>(word);
  if (!value || !(*value >= 0) || !std::isfinite(*value)) {
    throw Error(Errc::UsageArgument,
                fmt::format("parameter {} needs a number of at least 0, got '{}'", name, word));
  }
  return *value;
}

/// Returns 1.5 and 2 for "1.5,2"; nothing for a parameter that is not set.
template <class Value>
std::vector<Value> list_of(const BuildRequest& request,
                           const std::string& name,
                           Value (*value_of)(std::string_view name, std::string_view word)) {
  std::vector<Value> list;
  const auto found = request.set.find(name);
  std::string_view rest = found == request.set.end() ? std::string_view{} : found->second;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    list.push_back(value_of(name, rest.substr(0, comma)));
    rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
  }
  return list;
}

}  // namespace

int BuildRequest::number(const std::string& name, int fallback) const {
  const auto found = set.find(name);
  return found == set.end() ? fallback : to_number(name, found->second);
}

bool BuildRequest::flag(const std::string& name) const {
  const int value = number(name, 0);
  if (value != 0 && value != 1) {
    throw Error(Errc::UsageArgument, fmt::format("parameter {} needs 0 or 1, got {}", name, value));
  }
  return value == 1;
}

std::vector<int> BuildRequest::numbers(const std::string& name) const {
  return list_of(*this, name, to_number);
}

std::vector<double> BuildRequest::times(const std::string& name) const {
  return list_of(*this, name, to_time);
}

}  // namespace stagecraft
