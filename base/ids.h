/// StrongId gives each kind of integer id a type of its own, so that the compiler rejects a stage
/// in place of a microbatch. Every layer uses these ids; an id means nothing beyond its number.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>

namespace stagecraft {

/// StrongId is an integer with a type of its own. `Name` is a tag type and never defined.
template <class Name, class Int = std::int32_t>
struct StrongId {
  Int value{};

  constexpr StrongId() = default;
  constexpr explicit StrongId(Int v) : value(v) {}
  template <class Other>
  requires(std::is_integral_v<Other> &&
           !std::is_same_v<Other, Int>) constexpr explicit StrongId(Other v)
      : value(static_cast<Int>(v)) {}

  /// Returns the id as an array position.
  [[nodiscard]] constexpr std::size_t index() const { return static_cast<std::size_t>(value); }

  friend constexpr auto operator<=>(const StrongId&, const StrongId&) = default;
};

template <class Name, class Int>
std::string to_string(StrongId<Name, Int> id) {
  return std::to_string(id.value);
}

using Rank = StrongId<struct RankName>;  ///< one device's worker
/// The driver is a peer of the data plane: it sends inputs and labels.
inline constexpr Rank kDriver{-1};
/// Returns "rank 3" or "the driver", for messages.
inline std::string peer_name(Rank rank) {
  return rank == kDriver ? std::string("the driver") : "rank " + to_string(rank);
}

using StageId = StrongId<struct StageName>;            ///< a node of the stage graph
using Microbatch = StrongId<struct MicrobatchName>;    ///< a slice of one step's batch
using Step = StrongId<struct StepName, std::int64_t>;  ///< one optimizer update
/// Identifies an attempt at a step, or a transfer of state: an entry of a trainer's ledger.
using Submission = StrongId<struct SubmissionName, std::int64_t>;
using PlanId = StrongId<struct PlanIdName, std::int64_t>;  ///< identifies one trainer's plan
using Epoch =
    StrongId<struct EpochName, std::int64_t>;  ///< counts aborted plans: older tensors are refused
using EdgeId = StrongId<struct EdgeName>;      ///< one tensor crossing between two places
using SlotId = StrongId<struct SlotName>;      ///< a place in a worker's store
using InstructionId = StrongId<struct InstructionName>;
using StreamId =
    StrongId<struct StreamName>;  ///< a queue of a rank: a position in its list's names
/// Identifies the other end of a transfer of a list, on each of its ranks.
using PeerId = StrongId<struct PeerName>;

}  // namespace stagecraft

template <class Name, class Int>
struct std::hash<stagecraft::StrongId<Name, Int>> {
  std::size_t operator()(stagecraft::StrongId<Name, Int> id) const noexcept {
    return std::hash<Int>{}(id.value);
  }
};
