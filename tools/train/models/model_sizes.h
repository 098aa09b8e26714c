/// ModelSizes: the sizes of a model of the command, by the names of its options.
///
/// Each model declares its own (models.h); the command line has all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft::tools {

/// One option of a model: a whole number from 1 on, or a real one.
struct ModelSize {
  enum class Kind { Whole, Positive, FromZeroToOne };
  std::string_view name;  ///< without its dashes
  std::string_view meaning;
  std::optional<double> fallback;  ///< none: the model's own, which `meaning` describes
  Kind kind = Kind::Whole;
};

class ModelSizes {
 public:
  ModelSizes() = default;
  void set(std::string_view name, double value) {
    values_.insert_or_assign(std::string(name), value);
  }

  [[nodiscard]] bool has(std::string_view name) const { return values_.contains(name); }
  /// Requires: has(name).
  [[nodiscard]] std::int64_t whole(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;

 private:
  std::map<std::string, double, std::less<>> values_;
};

}  // namespace stagecraft::tools
