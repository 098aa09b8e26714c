/// Mailbox holds the tensors that have arrived at one rank without a receive, and the receives
/// without a tensor. It is the receiving half of every transport: a carrier of tensors delivers
/// into it, and its rank receives from it. It keeps T-1 to T-6 of the transport's contract.
///
/// Its mutex guards everything below it, because peers deliver from their own threads. It is held
/// for one table lookup only: futures complete and tensors are destroyed after its release (T-6).
/// ML-1: a lane holds tensors or receives, never both, and leaves the table when it holds neither.
/// ML-2: a lane that leaves the table keeps its memory in `spare_` for the next tag, so a steady
///       stream of steps allocates nothing here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"
#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

class Mailbox {
 public:
  Mailbox() = default;
  Mailbox(const Mailbox&) = delete;
  Mailbox(Mailbox&&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;
  Mailbox& operator=(Mailbox&&) = delete;
  ~Mailbox();

  /// Gives the tensor to the oldest receive of its lane, or stores it, or refuses it.
  void deliver(Rank from, const Tag& tag, at::Tensor tensor);
  [[nodiscard]] Future<at::Tensor> receive(Rank from, const Tag& tag);
  void advance(PlanId plan, Epoch current, const Error& why);
  void close(const Error& why);

  /// Returns whether a tensor of this tag would still be accepted. A false answer is final.
  [[nodiscard]] bool accepts(const Tag& tag) const;
  /// Throws TransportClosed if this end is closed.
  void check_open() const;
  /// Throws as check_open(), and also if the epoch is over.
  void require_current(PlanId plan, Epoch epoch) const;
  [[nodiscard]] std::uint64_t refused() const;
  [[nodiscard]] std::int64_t bytes_waiting() const;

 private:
  struct Key {
    Rank from;
    Tag tag;

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept {
      return hash_combine(std::hash<Tag>{}(key.tag), key.from.value);
    }
  };
  /// Lane holds all tensors of one sender under one tag, or all receives for them.
  struct Lane {
    std::deque<at::Tensor> tensors;
    std::deque<Promise<at::Tensor>> receives;
  };
  using Lanes = std::unordered_map<Key, Lane, KeyHash>;
  struct Aborted {
    Epoch current;  ///< every older one is over
    Error why;
  };

  static void fail(std::vector<Lanes::node_type>& removed,
                   Errc code,
                   std::string_view reason,
                   const Error& why);

  // The functions below require that the caller holds the mutex.
  [[nodiscard]] std::optional<Error> refusal(Rank from, const Tag& tag) const;
  /// Returns why the plan's epoch is over; null if it is not.
  [[nodiscard]] const Error* over(PlanId plan, Epoch epoch) const;
  [[nodiscard]] Lanes::iterator lane(const Key& key);
  void retire_if_empty(Lanes::iterator lane);
  template <class Predicate>
  [[nodiscard]] std::vector<Lanes::node_type> remove_if(Predicate predicate);

  mutable std::mutex mutex_;
  /// Holds the newest epoch that is over for any plan; all epochs are over after close. It is
  /// written under the mutex and read without it.
  std::atomic<std::int64_t> newest_over_{std::numeric_limits<std::int64_t>::min()};
  Lanes lanes_;
  std::vector<Lanes::node_type> spare_;
  std::unordered_map<PlanId, Aborted> aborted_;  ///< plans that have an epoch that is over
  std::optional<Error> closed_;
  std::uint64_t refused_ = 0;
  std::int64_t bytes_waiting_ = 0;
};

}  // namespace stagecraft
