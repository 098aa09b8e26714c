/// ModelSizes holds the sizes of a model of the command, by the names of its options.
///
/// The command line, which has the sizes of all models (ModelEntry::sizes), sets it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace stagecraft::tools {

class ModelSizes {
 public:
  void set(std::string_view name, double value) {
    values_.insert_or_assign(std::string(name), value);
  }

  [[nodiscard]] bool has(std::string_view name) const { return values_.contains(name); }
  /// Returns a whole size. Requires: has(name).
  [[nodiscard]] std::int64_t whole(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;

  [[nodiscard]] const std::map<std::string, double, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, double, std::less<>> values_;
};

}  // namespace stagecraft::tools
