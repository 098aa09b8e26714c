/// TransportCollective: collectives as plain sends and receives between all members, for groups
/// that live on CPUs and exchange little. It shares the rank's transport with the plan; edges below
/// 0 are its own (G-1).
#pragma once

#include <memory>
#include <vector>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class TransportCollective final : public Collective {
 public:
  explicit TransportCollective(std::shared_ptr<Transport> transport);

  [[nodiscard]] std::vector<at::Tensor> all_gather(const Group& group,
                                                   const Sequence& sequence,
                                                   at::Tensor contribution,
                                                   Deadline deadline) override;

 private:
  std::shared_ptr<Transport> transport_;
};

}  // namespace stagecraft
