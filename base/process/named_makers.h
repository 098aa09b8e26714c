/// NamedMakers holds what a program registers by name in its main, so that each rank can make its
/// own, also where ranks are other processes that run the same program.
///
/// Thread: any.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// NamedKind names a kind of registered things, for messages.
struct NamedKind {
  std::string name;     ///< "source"
  std::string adds_by;  ///< "register_source"
};

/// Each returns the error UsageArgument.
[[nodiscard]] Error unnamed_maker(const NamedKind& kind, const std::string& name, bool has_maker);
[[nodiscard]] Error name_taken(const NamedKind& kind, const std::string& name);
[[nodiscard]] Error name_unknown(const NamedKind& kind,
                                 const std::string& name,
                                 const std::vector<std::string>& known);

template <class Made, class... Args>
class NamedMakers {
 public:
  using Maker = std::function<Made(Args...)>;

  explicit NamedMakers(NamedKind kind) : kind_(std::move(kind)) {}

  /// Errors: UsageArgument if the name or the maker is empty, or if the name is taken.
  void add(const std::string& name, Maker make) {
    if (name.empty() || make == nullptr) {
      throw unnamed_maker(kind_, name, make != nullptr);
    }
    const std::scoped_lock lock(mutex_);
    if (!makers_.emplace(name, std::move(make)).second) {
      throw name_taken(kind_, name);
    }
  }

  /// Errors: UsageArgument for a name that this program has not registered.
  [[nodiscard]] Maker at(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    const auto found = makers_.find(name);
    if (found == makers_.end()) {
      throw unknown(name);
    }
    return found->second;
  }

  /// Returns the message of at()'s error; empty for a registered name.
  [[nodiscard]] std::string missing(const std::string& name) const {
    const std::scoped_lock lock(mutex_);
    return makers_.contains(name) ? "" : unknown(name).message();
  }

 private:
  [[nodiscard]] Error unknown(const std::string& name) const {
    std::vector<std::string> known;
    for (const auto& [other, maker] : makers_) {
      known.push_back(other);
    }
    return name_unknown(kind_, name, known);
  }

  const NamedKind kind_;
  mutable std::mutex mutex_;
  std::map<std::string, Maker> makers_;
};

}  // namespace stagecraft
