/// JsonPlace is a value in a JSON text together with the path to it, so that every error message
/// can name the place.
///
/// It holds the value and the place that led to it, and builds the path's text only when a message
/// needs it. It refers to the text's tree and to the place before; both must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace stagecraft::exported {

class JsonPlace {
 public:
  explicit JsonPlace(const nlohmann::json& root) : value_(&root) {}

  /// Returns the member `key`.
  /// Errors: UsageFile if this is not an object or has no such member.
  [[nodiscard]] JsonPlace at(std::string_view key) const;
  /// Does the same, but returns nothing if there is no such member or it is null.
  [[nodiscard]] std::optional<JsonPlace> find(std::string_view key) const;

  /// Calls `visit(place)` for each element. Errors: UsageFile if this is not an array.
  template <class Visit>
  void each(Visit&& visit) const {
    require(value_->is_array(), "an array");
    std::size_t i = 0;
    for (const nlohmann::json& element : *value_) {
      visit(JsonPlace(element, *this, {}, i++));
    }
  }

  /// Calls `visit(key, place)` for each member. Errors: UsageFile if this is not an object.
  template <class Visit>
  void members(Visit&& visit) const {
    require(value_->is_object(), "an object");
    for (const auto& [key, member] : value_->get_ref<const nlohmann::json::object_t&>()) {
      visit(key, JsonPlace(member, *this, key, kNoIndex));
    }
  }

  /// Calls `visit(key, place)` for the one member of a union.
  /// Errors: UsageFile for any other number of members.
  template <class Visit>
  void alternative(Visit&& visit) const {
    require(value_->is_object() && value_->size() == 1, "an object with one key");
    members(visit);
  }

  /// Return the value. Errors: UsageFile if it has another type.
  [[nodiscard]] const std::string& string() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] bool boolean() const;
  /// Returns a number. JSON texts contain infinite and undefined numbers as strings.
  [[nodiscard]] double number() const;
  [[nodiscard]] std::size_t size() const { return value_->size(); }

  /// Throws UsageFile with the path to this place.
  [[noreturn]] void refuse(std::string_view what) const;

 private:
  static constexpr std::size_t kNoIndex = static_cast<std::size_t>(-1);

  JsonPlace(const nlohmann::json& value,
            const JsonPlace& from,
            std::string_view key,
            std::size_t index)
      : value_(&value), from_(&from), key_(key), index_(index) {}

  void require(bool good, std::string_view expected) const;
  [[nodiscard]] std::string path() const;

  const nlohmann::json* value_;
  const JsonPlace* from_ = nullptr;
  std::string_view key_;
  std::size_t index_ = kNoIndex;
};

}  // namespace stagecraft::exported
