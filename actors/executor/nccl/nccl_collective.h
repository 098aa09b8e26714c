/// NcclCollective runs the collectives of tensors on devices from device to device, by NCCL.
///
/// A rank on an accelerator has one, for its plan thread, around the form that goes through the
/// host's memory. That form serves tensors of the CPU, and groups that NCCL does not connect.
///
///     all_reduce of 2 members    [a0 a1]  [b0 b1]
///       all to all               [a0 b0]  [a1 b1]
///       sums by rank             [a0+b0]  [a1+b1]
///       all gather               [a0+b0 a1+b1] on both
///
/// The whole operation is work of the stream on which it starts. Its members also tell each other,
/// in the host's memory, that they have started it and with what: a wait shows who has not.
/// NS-1: sums are added in the order of the ranks (CL-1). With DeviceReduce::Nccl, NCCL chooses the
///       order of all_reduce for types that it adds; all members still get the same bits.
/// NS-2: groups share a communicator if they have the same members and start on the same stream,
///       where P-10 has judged their order. A start says which of the communicator it is, so that
///       members that start in different orders are an error and not wrong numbers (NC-1).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "stagecraft/actors/executor/nccl/nccl_connector.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/futures/collective/collective.h"

namespace stagecraft {

/// Ids of groups that share a communicator, and their members.
struct NcclGroups {
  std::vector<Rank> ranks;
  std::vector<std::int32_t> ids;
};

class NcclCollective final : public Collective {
 public:
  /// The references outlive it. `most_rounds`: of an exchange of all members, in one call of NCCL.
  NcclCollective(Rank self,
                 NcclConnector& connector,
                 Collective& by_host,
                 DeviceReduce reduce = DeviceReduce::ByRank,
                 int most_rounds = Nccl::kMostRounds);

  /// Connects the groups of this rank, unless they are connected in the connector's epoch. Members
  /// agree to do without where they cannot join.
  /// Requires: all members of all groups call this in the same steps, with their groups in one
  /// order. Errors: those of NcclConnector::join.
  void connect(const std::vector<NcclGroups>& groups);

  [[nodiscard]] std::unique_ptr<PendingResult> all_reduce(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor buffer) override;
  [[nodiscard]] std::unique_ptr<PendingResult> reduce_scatter(const Group& group,
                                                              const Sequence& sequence,
                                                              at::Tensor contribution) override;
  [[nodiscard]] std::unique_ptr<PendingResult> all_gather(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) override;
  [[nodiscard]] std::unique_ptr<PendingResult> all_to_all(const Group& group,
                                                          const Sequence& sequence,
                                                          at::Tensor contribution) override;

 private:
  class Started;
  struct GroupLink {
    NcclGroups groups;
    std::shared_ptr<Nccl::Communicator> end;  ///< null: this group goes through the host's memory
    std::vector<Rank> peers;
    std::int64_t self = 0, members = 0;
    std::int64_t given = 0;  ///< operations so far
  };

  [[nodiscard]] GroupLink connected(const NcclGroups& groups);
  /// Returns null for a group or a tensor that goes through the host's memory. Errors: Internal
  /// for what the operations require, as those of any form.
  [[nodiscard]] GroupLink* link_of(const Group& group,
                                   const Sequence& sequence,
                                   const at::Tensor& contribution);
  template <class Give>
  [[nodiscard]] std::unique_ptr<PendingResult> start(const char* name,
                                                     GroupLink& link,
                                                     const Group& group,
                                                     const Sequence& sequence,
                                                     const at::Tensor& contribution,
                                                     Give&& give);
  [[nodiscard]] at::Tensor exchanged(GroupLink& link, const at::Tensor& parts);
  [[nodiscard]] at::Tensor gathered(GroupLink& link, const at::Tensor& part);
  void gather_into(GroupLink& link, const at::Tensor& part, const at::Tensor& all);
  void reduce_by_nccl(GroupLink& link, const at::Tensor& buffer);
  void reduce_by_rank(GroupLink& link, const at::Tensor& buffer);

  const Rank self_;
  NcclConnector& connector_;
  Collective& by_host_;
  const DeviceReduce reduce_;
  const int most_rounds_;
  std::optional<Epoch> epoch_;  ///< of the links
  std::vector<GroupLink> links_;
};

}  // namespace stagecraft
