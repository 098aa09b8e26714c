#include "stagecraft/compiler/import/archive/json_place.h"

#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::exported {
namespace {

constexpr std::size_t kLongest = 60;

/// Returns a short description of the value.
std::string told(const nlohmann::json& value) {
  if (value.is_object() || value.is_array()) {
    return fmt::format(
        "{} with {} elements", value.is_object() ? "an object" : "an array", value.size());
  }
  std::string text = value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > kLongest) {
    text.resize(kLongest);
    text += "...";
  }
  return text;
}

}  // namespace

JsonPlace JsonPlace::at(std::string_view key) const {
  require(value_->is_object(), "an object");
  const auto found = value_->find(key);
  if (found == value_->end()) {
    refuse(fmt::format("expected the key \"{}\", found none", key));
  }
  return {*found, *this, key, kNoIndex};
}

std::optional<JsonPlace> JsonPlace::find(std::string_view key) const {
  require(value_->is_object(), "an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) {
    return std::nullopt;
  }
  return JsonPlace(*found, *this, key, kNoIndex);
}

const std::string& JsonPlace::string() const {
  require(value_->is_string(), "a string");
  return value_->get_ref<const std::string&>();
}

std::int64_t JsonPlace::integer() const {
  const bool fits = value_->is_number_integer() &&
                    (!value_->is_number_unsigned() ||
                     value_->get<std::uint64_t>() <=
                         static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  require(fits, "an integer of 64 bits");
  return value_->get<std::int64_t>();
}

bool JsonPlace::boolean() const {
  require(value_->is_boolean(), "true or false");
  return value_->get<bool>();
}

double JsonPlace::number() const {
  if (value_->is_string()) {
    const auto& word = value_->get_ref<const std::string&>();
    if (word == "Infinity") {
      return HUGE_VAL;
    }
    if (word == "-Infinity") {
      return -HUGE_VAL;
    }
    if (word == "NaN") {
      return std::nan("");
    }
  }
  require(value_->is_number(), "a number");
  return value_->get<double>();
}

void JsonPlace::require(bool good, std::string_view expected) const {
  if (!good) {
    refuse(fmt::format("expected {}, found {}", expected, told(*value_)));
  }
}

std::string JsonPlace::path() const {
  if (from_ == nullptr) {
    return {};
  }
  const std::string before = from_->path();
  if (index_ != kNoIndex) {
    return fmt::format("{}[{}]", before, index_);
  }
  return before.empty() ? std::string(key_) : fmt::format("{}.{}", before, key_);
}

void JsonPlace::refuse(std::string_view what) const {
  const std::string where = path();
  throw Error(Errc::UsageFile,
              fmt::format("{}: {}", where.empty() ? "at the top" : "at " + where, what));
}

}  // namespace stagecraft::exported
