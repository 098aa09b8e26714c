/// Runs the contract of the collectives on tensors of simulated devices, which sum in the host's
/// memory.
#include "stagecraft/futures/collective/host_collective.h"

#include <memory>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>

#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/conformance/collective_conformance.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

/// Gives the cases, which use the host's memory, what a device has made.
class ReadBack final : public PendingResult {
 public:
  ReadBack(std::unique_ptr<PendingResult> on_device, at::Tensor buffer)
      : on_device_(std::move(on_device)), buffer_(std::move(buffer)) {}
  [[nodiscard]] at::Tensor wait(Deadline deadline) override {
    const at::Tensor result = on_device_->wait(deadline);
    if (result.device().type() != sim::kType) {
      return at::empty({0});  // a wrong result: checks belong to the test's own thread
    }
    return buffer_.defined() ? buffer_.copy_(result) : result.cpu();
  }
  void abandon() override { on_device_->abandon(); }

 private:
  std::unique_ptr<PendingResult> on_device_;
  at::Tensor buffer_;  ///< of an all_reduce
};

/// Moves contributions to the device of a rank.
class OnDevice final : public Collective {
 public:
  OnDevice(const std::shared_ptr<Transport>& end, std::shared_ptr<WaitBoard> board, int device)
      : on_host_(end, std::move(board)), place_(SimDevices::device(device)) {}

  std::unique_ptr<PendingResult> all_reduce(const Group& group,
                                            const Sequence& sequence,
                                            at::Tensor buffer) override {
    auto pending = collective_.all_reduce(group, sequence, moved(buffer));
    return std::make_unique<ReadBack>(std::move(pending), std::move(buffer));
  }
  std::unique_ptr<PendingResult> reduce_scatter(const Group& group,
                                                const Sequence& sequence,
                                                at::Tensor given) override {
    return read_back(collective_.reduce_scatter(group, sequence, moved(given)));
  }
  std::unique_ptr<PendingResult> all_gather(const Group& group,
                                            const Sequence& sequence,
                                            at::Tensor given) override {
    return read_back(collective_.all_gather(group, sequence, moved(given)));
  }
  std::unique_ptr<PendingResult> all_to_all(const Group& group,
                                            const Sequence& sequence,
                                            at::Tensor given) override {
    return read_back(collective_.all_to_all(group, sequence, moved(given)));
  }

 private:
  /// Keeps the strides, which a case may have on purpose.
  [[nodiscard]] at::Tensor moved(const at::Tensor& given) const {
    return given.defined()
               ? at::empty_strided(given.sizes(), given.strides(), given.options().device(place_))
                     .copy_(given)
               : given;
  }
  static std::unique_ptr<PendingResult> read_back(std::unique_ptr<PendingResult> pending) {
    return std::make_unique<ReadBack>(std::move(pending), at::Tensor());
  }

  TransportCollective on_host_;
  HostCollective collective_{on_host_};
  c10::Device place_;
};

Members on_devices(int ranks) {
  InprocNetwork network(ranks);
  Members members;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::shared_ptr<Transport> end = network.endpoint(Rank(rank));
    const auto board = std::make_shared<WaitBoard>();
    members.push_back({end, board, std::make_shared<OnDevice>(end, board, rank % kSimDevices)});
  }
  return members;
}

TEST_CASE("collectives of devices keep the contract (CL-1 to CL-4)", "[sim][collective]") {
  const SimDevices devices;
  for (const CollectiveCase& one : collective_cases()) {
    DYNAMIC_SECTION(one.name) {
      one.run(on_devices);
    }
  }
}

}  // namespace
}  // namespace stagecraft::tests
