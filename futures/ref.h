/// Ref and RemoteValue: the name of a value that stays on its worker, and the handle that keeps it
/// there.
///
/// The driver hands RemoteValues to the user; they may be copied and dropped on any thread.
/// when the last copy goes, the release callback runs exactly once, on the thread that dropped
///      it. It must not throw and must not block: it posts a message to the owner.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "stagecraft/base/check.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

using RefId = StrongId<struct RefName, std::uint64_t>;  ///< unique on its owner, never used again

/// Where a value is and how it is called there.
struct Ref {
  Rank owner;
  RefId id;

  friend constexpr auto operator<=>(const Ref&, const Ref&) = default;
};

inline std::string to_string(const Ref& ref) {
  return "value " + to_string(ref.id) + " of rank " + to_string(ref.owner);
}

class RemoteValue {
 public:
  using Release = std::function<void(const Ref&)>;

  /// Names nothing, releases nothing.
  RemoteValue() = default;
  RemoteValue(Ref ref, Release release)
      : ref_(new Ref(ref), [release = std::move(release)](const Ref* named) noexcept {
          const std::unique_ptr<const Ref> owned(named);
          release(*owned);
        }) {}

  [[nodiscard]] bool valid() const { return ref_ != nullptr; }

  [[nodiscard]] const Ref& ref() const {
    SC_CHECK(ref_ != nullptr, "a handle that names no value was read");
    return *ref_;
  }

 private:
  std::shared_ptr<const Ref> ref_;
};

}  // namespace stagecraft

template <>
struct std::hash<stagecraft::Ref> {
  std::size_t operator()(const stagecraft::Ref& ref) const noexcept {
    return std::hash<stagecraft::RefId>{}(ref.id) * 31U + std::hash<stagecraft::Rank>{}(ref.owner);
  }
};
