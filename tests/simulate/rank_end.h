/// RankEnd is the end of a rank in a simulated process: a Transport whose tensors travel over the
/// simulated network.
///
/// The ends of one crew share a list of the processes in which its ranks live now.
#pragma once

#include <memory>
#include <vector>

#include "stagecraft/futures/transport/mailbox.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/tests/simulate/network.h"

namespace stagecraft::simulation {

class RankEnd;

/// Ends holds the newest end of each rank of a crew, and of the driver.
struct Ends {
  Network& network;
  std::vector<std::weak_ptr<RankEnd>> of_ranks;
  std::weak_ptr<RankEnd> of_driver;

  /// Returns null for a rank that has none now.
  /// Errors: TransportRefused for a rank that is no peer.
  [[nodiscard]] std::shared_ptr<RankEnd> of(Rank rank) const;
};

class RankEnd final : public Transport, public std::enable_shared_from_this<RankEnd> {
 public:
  RankEnd(std::shared_ptr<Ends> ends, Rank self, ProcessNumber process)
      : ends_(std::move(ends)), self_(self), process_(process) {}

  [[nodiscard]] Rank self() const override { return self_; }
  void send(Rank to, const Tag& tag, at::Tensor tensor) override;
  [[nodiscard]] Route route_to(Rank to) const override;
  [[nodiscard]] bool hands_over(Rank /*to*/) const override { return false; }
  [[nodiscard]] Future<at::Tensor> receive(Rank from, const Tag& tag) override;
  void advance(PlanId plan, Epoch current, const Error& why) override {
    arrived_.advance(plan, current, why);
  }
  void require_current(PlanId plan, Epoch epoch) const override {
    arrived_.require_current(plan, epoch);
  }
  [[nodiscard]] std::uint64_t refused() const override { return arrived_.refused(); }
  [[nodiscard]] std::int64_t bytes_waiting() const override { return arrived_.bytes_waiting(); }
  void close(const Error& why) override { arrived_.close(why); }

 private:
  const std::shared_ptr<Ends> ends_;
  const Rank self_;
  const ProcessNumber process_;
  Mailbox arrived_;
};

}  // namespace stagecraft::simulation
