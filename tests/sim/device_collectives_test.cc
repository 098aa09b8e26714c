/// Runs the contract of the collectives on tensors of simulated devices, which sum in the host's
/// memory, by NCCL, or from device to device of one process.
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/ones.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/ScopeExit.h>

#include "stagecraft/actors/executor/device/host_collective.h"
#include "stagecraft/actors/executor/device/stream_passing.h"
#include "stagecraft/actors/executor/nccl/nccl_collective.h"
#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/conformance/collective_conformance.h"
#include "stagecraft/tests/sim/nccl.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/apart_transport.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

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

/// Forms holds the forms of the collectives for a rank on a device.
struct Forms {
  Forms(Rank self, const std::shared_ptr<Transport>& end, const std::shared_ptr<WaitBoard>& board)
      : Forms(self, end, board, SimDevices::device(self.value % kSimDevices)) {}
  Forms(Rank self,
        const std::shared_ptr<Transport>& end,
        const std::shared_ptr<WaitBoard>& board,
        c10::Device on)
      : transport(end),
        place(on),
        sums(place),
        on_host(
            end, board, [this] { sums.use(); }, std::make_shared<StreamPassing>(place)),
        by_host(on_host, end),
        connector(place, end, board, std::chrono::seconds(30)),
        by_nccl(self, connector, by_host, DeviceReduce::ByRank, kMostRounds) {}

  /// A receive that never ends would keep tensors alive.
  ~Forms() { transport->close(Error(Errc::TransportClosed, "the case is over")); }
  Forms(const Forms&) = delete;
  Forms& operator=(const Forms&) = delete;

  /// Less than the members, so that an exchange takes several calls.
  static constexpr int kMostRounds = 2;

  std::shared_ptr<Transport> transport;
  c10::Device place;
  SumStream sums;
  TransportCollective on_host;
  HostCollective by_host;
  NcclConnector connector;
  NcclCollective by_nccl;
};

/// Moves contributions to the device of a rank. Each group has a stream, as in a plan.
class OnDevice final : public Collective {
 public:
  OnDevice(std::shared_ptr<Forms> forms, Collective& form)
      : forms_(std::move(forms)), form_(form) {}

  std::unique_ptr<PendingResult> all_reduce(const Group& group,
                                            const Sequence& sequence,
                                            at::Tensor buffer) override {
    auto pending = started(&Collective::all_reduce, group, sequence, buffer);
    return std::make_unique<ReadBack>(std::move(pending), std::move(buffer));
  }
  std::unique_ptr<PendingResult> reduce_scatter(const Group& group,
                                                const Sequence& sequence,
                                                at::Tensor given) override {
    return read_back(started(&Collective::reduce_scatter, group, sequence, given));
  }
  std::unique_ptr<PendingResult> all_gather(const Group& group,
                                            const Sequence& sequence,
                                            at::Tensor given) override {
    return read_back(started(&Collective::all_gather, group, sequence, given));
  }
  std::unique_ptr<PendingResult> all_to_all(const Group& group,
                                            const Sequence& sequence,
                                            at::Tensor given) override {
    return read_back(started(&Collective::all_to_all, group, sequence, given));
  }

 private:
  template <class Operation>
  std::unique_ptr<PendingResult> started(Operation operation,
                                         const Group& group,
                                         const Sequence& sequence,
                                         const at::Tensor& given) {
    at::Tensor there = moved(given);  // the host waits for this, so not on the group's stream
    const c10::impl::VirtualGuardImpl guard(sim::kType);
    const auto stream =
        streams_.try_emplace(group.id, SimDevices::new_stream(forms_->place.index())).first->second;
    const c10::Stream before = guard.exchangeStream(stream);
    const auto back = c10::make_scope_exit([&] { (void)guard.exchangeStream(before); });
    return (form_.*operation)(group, sequence, std::move(there));
  }
  /// Keeps the strides, which a case may have on purpose.
  [[nodiscard]] at::Tensor moved(const at::Tensor& given) const {
    return given.defined()
               ? at::empty_strided(
                     given.sizes(), given.strides(), given.options().device(forms_->place))
                     .copy_(given)
               : given;
  }
  static std::unique_ptr<PendingResult> read_back(std::unique_ptr<PendingResult> pending) {
    return std::make_unique<ReadBack>(std::move(pending), at::Tensor());
  }

  std::shared_ptr<Forms> forms_;
  Collective& form_;
  std::map<std::int32_t, c10::Stream> streams_;  ///< by group
};

/// Shares the communicator of group 0.
constexpr std::int32_t kOtherGroup = 2;

/// Returns members of one process, each on a device, or two on one if there are more.
Members members_together(int ranks) {
  InprocNetwork network(ranks);
  Members members;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::shared_ptr<Transport> end = network.endpoint(Rank(rank));
    const auto board = std::make_shared<WaitBoard>();
    const auto forms = std::make_shared<Forms>(Rank(rank), end, board);
    members.push_back({end, board, std::make_shared<OnDevice>(forms, forms->by_host)});
  }
  return members;
}

/// Together is two ranks of one process that sum on their devices.
class Together {
 public:
  using Operation = std::unique_ptr<PendingResult> (Collective::*)(const Group&,
                                                                   const Sequence&,
                                                                   at::Tensor);

  Together(Operation operation, bool share_a_device)
      : operation_(operation), devices_({.at_once = true}), network_(2) {
    for (int rank = 0; rank < 2; ++rank) {
      const int place = share_a_device ? 0 : rank;
      forms_.push_back(std::make_unique<Forms>(Rank(rank),
                                               network_.endpoint(Rank(rank)),
                                               std::make_shared<WaitBoard>(),
                                               SimDevices::device(place)));
      streams_.push_back(SimDevices::new_stream(place));
    }
    run();  // makes all streams
  }

  /// Starts the operation on both, frees what was given if others get it, waits for the results
  /// and changes them. Returns what the detector found.
  std::vector<std::string> with(sim::Options options) {
    options.at_once = true;
    SimDevices::restart(options);
    run();
    return SimDevices::take_reports();
  }

  /// Starts the operation on both without memory for more than what is given. Returns the errors.
  std::vector<std::optional<Errc>> without_memory() {
    std::vector<at::Tensor> tensors = given();
    SimDevices::restart({.at_once = true, .memory = 0});
    const auto pending = started(std::move(tensors));
    std::vector<std::optional<Errc>> errors;
    for (const auto& one : pending) {
      errors.push_back(thrown_by([&] { (void)one->wait(soon()); }));
    }
    return errors;
  }

 private:
  static Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(30); }

  [[nodiscard]] std::vector<at::Tensor> given() const {
    const c10::impl::VirtualGuardImpl guard(sim::kType);
    std::vector<at::Tensor> tensors;
    for (std::size_t rank = 0; rank < forms_.size(); ++rank) {
      (void)guard.exchangeStream(streams_[rank]);
      tensors.push_back(at::ones({64}, at::TensorOptions(forms_[rank]->place)));
    }
    return tensors;
  }

  std::vector<std::unique_ptr<PendingResult>> started(std::vector<at::Tensor> tensors) {
    const c10::impl::VirtualGuardImpl guard(sim::kType);
    std::vector<std::unique_ptr<PendingResult>> pending;
    for (std::size_t rank = 0; rank < forms_.size(); ++rank) {
      (void)guard.exchangeStream(streams_[rank]);
      pending.push_back(
          (forms_[rank]->by_host.*operation_)({.ranks = {Rank(0), Rank(1)}, .id = 0},
                                              {.submission = Submission(5), .number = number_},
                                              std::move(tensors[rank])));
    }
    ++number_;
    return pending;
  }

  void run() {
    const c10::impl::VirtualGuardImpl guard(sim::kType);
    const auto pending = started(given());
    for (std::size_t rank = 0; rank < forms_.size(); ++rank) {
      (void)guard.exchangeStream(streams_[rank]);
      pending[rank]->wait(soon()).add_(1);
    }
    for (const auto& forms : forms_) {
      (void)guard.exchangeStream(SimDevices::default_stream(forms->place.index()));
    }
  }

  const Operation operation_;
  const SimDevices devices_;
  InprocNetwork network_;
  std::vector<std::unique_ptr<Forms>> forms_;
  std::vector<c10::Stream> streams_;
  int number_ = 0;
};

TEST_CASE("each wait of a sum between devices of a process is found where it is left out",
          "[sim][collective]") {
  const bool share_a_device = GENERATE(true, false);
  CAPTURE(share_a_device);
  Together ranks(&Collective::all_reduce, share_a_device);
  CHECK(ranks.with({}) == std::vector<std::string>());
  const std::vector<sim::StreamCall> waits = sim::Machine::the().waited();
  CHECK(waits.size() >= 10);  // of each: two parts, a sum, the word that it was read, the result
  for (const sim::StreamCall& wait : waits) {
    constexpr int kReader = 2 + sim::kPool;
    if (wait.stream == kReader && wait.number == 1) {
      continue;  // LibTorch's, for the memory of the first copy, which nothing has used before
    }
    CAPTURE(wait.device, wait.stream, wait.number);
    CHECK_FALSE(ranks.with({.left_out_wait = wait}).empty());
  }
}

TEST_CASE("a device without memory for a sum says so, and nobody waits for it",
          "[sim][collective][failure]") {
  Together ranks(&Collective::all_reduce, /*share_a_device=*/false);
  for (const std::optional<Errc>& error : ranks.without_memory()) {
    CHECK(error == Errc::DeviceOutOfMemory);
  }
}

TEST_CASE("memory that others of the process gather is kept for them", "[sim][collective]") {
  const auto operation = GENERATE(&Collective::all_gather, &Collective::all_to_all);
  const bool share_a_device = GENERATE(true, false);
  CAPTURE(share_a_device);
  Together ranks(operation, share_a_device);
  CHECK(ranks.with({}) == std::vector<std::string>());
  const std::vector<sim::StreamCall> kept = sim::Machine::the().kept();
  CHECK_FALSE(kept.empty());
  for (const sim::StreamCall& one : kept) {
    CAPTURE(one.device, one.stream, one.number);
    CHECK_FALSE(ranks.with({.left_out_keep = one}).empty());
  }
}

Members members_of(int ranks, const std::function<Collective&(Forms&)>& form_of) {
  REQUIRE(ranks <= kSimDevices);  // or two would share one, and go without NCCL
  InprocNetwork network(ranks);
  Members members;
  std::vector<std::shared_ptr<Forms>> forms;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto end = std::make_shared<ApartTransport>(network.endpoint(Rank(rank)));
    const auto board = std::make_shared<WaitBoard>();
    forms.push_back(std::make_shared<Forms>(Rank(rank), end, board));
    members.push_back(
        {end, board, std::make_shared<OnDevice>(forms.back(), form_of(*forms.back()))});
  }
  std::vector<std::jthread> connecting;
  for (int rank = 0; rank < ranks && ranks > 1; ++rank) {
    connecting.emplace_back([&, rank] {
      // The groups of the cases.
      std::vector<NcclGroups> groups{{.ranks = {}, .ids = {0, kOtherGroup}}};
      for (int r = 0; r < ranks; ++r) {
        groups.front().ranks.emplace_back(r);
      }
      if (ranks == 3 && rank != 1) {
        groups.push_back({.ranks = {Rank(0), Rank(2)}, .ids = {1}});
      }
      forms[static_cast<std::size_t>(rank)]->connector.begin(Tag{.submission = Submission(5)});
      forms[static_cast<std::size_t>(rank)]->by_nccl.connect(groups);
    });
  }
  return members;
}

TEST_CASE("collectives of devices keep the contract in the host's memory (CL-1 to CL-4)",
          "[sim][collective]") {
  const SimDevices devices;
  for (const CollectiveCase& one : collective_cases()) {
    DYNAMIC_SECTION(one.name) {
      one.run([](int ranks) {
        return members_of(ranks, [](Forms& forms) -> Collective& { return forms.by_host; });
      });
    }
  }
}

TEST_CASE("collectives keep the contract between the devices of a process (CL-1 to CL-4)",
          "[sim][collective]") {
  const bool poison = GENERATE(false, true);
  const SimDevices devices({.most_delay = std::chrono::microseconds(20), .poison = poison});
  for (const CollectiveCase& one : collective_cases()) {
    DYNAMIC_SECTION(one.name) {
      one.run(members_together);
      CHECK(devices.take_reports() == std::vector<std::string>());
    }
  }
}

TEST_CASE("collectives of devices keep the contract by NCCL (CL-1 to CL-4)",
          "[sim][collective][nccl]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(20)});
  for (const CollectiveCase& one : collective_cases()) {
    DYNAMIC_SECTION(one.name) {
      one.run([](int ranks) {
        return members_of(ranks, [](Forms& forms) -> Collective& { return forms.by_nccl; });
      });
      CHECK(devices.take_reports() == std::vector<std::string>());
      CHECK(sim::nccl_unfinished() == std::vector<std::string>());
    }
  }
}

TEST_CASE("groups that share a communicator start in one order, or are refused (NS-2)",
          "[sim][collective][nccl][bad-input]") {
  const SimDevices devices;
  const Members members = members_of(2, [](Forms& forms) -> Collective& { return forms.by_nccl; });
  const Group one{.ranks = {Rank(0), Rank(1)}, .id = 0};
  const Group other{.ranks = one.ranks, .id = kOtherGroup};
  const std::int64_t before = sim::nccl_group_calls();
  const auto start = [&](std::size_t rank, const Group& group) {
    return members[rank].collective->all_reduce(
        group, {.submission = Submission(5)}, at::ones({4}, at::kFloat));
  };
  std::vector<std::unique_ptr<PendingResult>> pending;
  pending.push_back(start(0, one));
  pending.push_back(start(0, other));
  pending.push_back(start(1, other));
  pending.push_back(start(1, one));
  constexpr int kRanks = 2, kGroups = 2, kExchangeAndGather = 2;
  CHECK(sim::nccl_group_calls() - before == kRanks * kGroups * kExchangeAndGather);
  for (const auto& operation : pending) {
    CHECK(thrown_by([&] {
            (void)operation->wait(std::chrono::steady_clock::now() + std::chrono::seconds(30));
          }) == Errc::PlanInvalid);
  }
}

}  // namespace
}  // namespace stagecraft::tests
