#include "stagecraft/actors/executor/nccl/nccl_links.h"

#include <chrono>
#include <cstdint>
#include <future>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/sim/nccl.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/apart_transport.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

const std::vector<RankPair> kBothWays{{Rank(0), Rank(1)}, {Rank(1), Rank(0)}};
constexpr Tag kStep{.plan = PlanId(3), .epoch = Epoch(2), .submission = Submission(9)};
constexpr std::chrono::seconds kPatience{30};

/// Two ranks with a device each.
struct TwoRanks {
  /// One rank's end.
  struct End {
    End(int rank, InprocNetwork& network, std::chrono::milliseconds patience)
        : connector(SimDevices::device(rank),
                    std::make_shared<ApartTransport>(network.endpoint(Rank(rank))),
                    std::make_shared<WaitBoard>(),
                    patience),
          links(Rank(rank), connector) {}
    void connect(const Tag& step) {
      connector.begin(step);
      links.connect(kBothWays);
    }
    NcclConnector connector;
    NcclLinks links;
  };

  explicit TwoRanks(std::chrono::milliseconds patience = kPatience)
      : first_end(0, network, patience), second_end(1, network, patience) {}

  void connect(const Tag& step = kStep) {
    auto other = std::async(std::launch::async, [&] { second_end.connect(step); });
    first_end.connect(step);
    other.get();
  }
  void end_epoch(int rank) const {
    network.endpoint(Rank(rank))
        ->advance(kStep.plan, Epoch(kStep.epoch.value + 1), Error(Errc::WorkerFailed, "given up"));
  }

  InprocNetwork network{2};
  End first_end, second_end;
  NcclLinks* const first = &first_end.links;
  NcclLinks* const second = &second_end.links;
};

at::Tensor on_device(int device, const at::Tensor& tensor) {
  return tensor.to(SimDevices::device(device));
}

TEST_CASE("a linked tensor has the values, type and strides of what was sent", "[sim][nccl]") {
  const SimDevices devices;
  TwoRanks ranks;
  ranks.connect();
  REQUIRE(ranks.first->sends_to(Rank(1)));
  REQUIRE(ranks.second->receives_from(Rank(0)));
  const at::Tensor whole = torch::arange(24, at::kDouble).reshape({2, 3, 4});
  for (const at::Tensor& sent : {whole,
                                 whole.permute({2, 0, 1}),
                                 whole.slice(2, 0, 4, 2),
                                 whole.to(at::kBFloat16),
                                 whole.slice(0, 0, 0),
                                 torch::tensor(5)}) {
    const at::Tensor ticket = ranks.first->send(Rank(1), on_device(0, sent));
    const at::Tensor got = ranks.second->receive(Rank(0), ticket);
    CHECK(got.device() == SimDevices::device(1));
    CHECK(got.dtype() == sent.dtype());
    CHECK(torch::equal(got.cpu(), sent));
  }
  const at::Tensor complex = torch::complex(torch::ones({2}), torch::arange(2, at::kFloat));
  const at::Tensor conjugated = on_device(0, complex).conj();
  CHECK(torch::equal(ranks.second->receive(Rank(0), ranks.first->send(Rank(1), conjugated)).cpu(),
                     complex.conj().resolve_conj()));
  const at::Tensor permuted = on_device(0, whole).permute({2, 0, 1});
  CHECK(ranks.second->receive(Rank(0), ranks.first->send(Rank(1), permuted)).strides() ==
        permuted.strides());
  SimDevices::finish();
  CHECK(sim::nccl_unfinished().empty());
}

TEST_CASE("a tensor that is received out of turn is refused, not taken for another",
          "[sim][nccl][bad-input]") {
  const SimDevices devices;
  TwoRanks ranks;
  ranks.connect();
  const at::Tensor one = on_device(0, torch::ones({3}));
  const at::Tensor earlier = ranks.first->send(Rank(1), one);
  const at::Tensor later = ranks.first->send(Rank(1), one);
  const Error error = [&] {
    try {
      (void)ranks.second->receive(Rank(0), later);
    } catch (const Error& thrown) {
      return thrown;
    }
    return Error(Errc::Internal, "nothing was refused");
  }();
  CHECK(error.code() == Errc::PlanInvalid);
  CHECK_THAT(error.message(),
             ContainsSubstring("rank 0 sends this as its transfer 1 to rank 1, which receives it "
                               "as its transfer 0"));
  (void)ranks.second->receive(Rank(0), earlier);
  (void)ranks.second->receive(Rank(0), later);
}

TEST_CASE("links end with their epoch: a send whose receive never comes holds no stream",
          "[sim][nccl][failure]") {
  const SimDevices devices;
  TwoRanks ranks;
  ranks.connect();
  SimDevices::finish();
  (void)ranks.first->send(Rank(1), on_device(0, torch::ones({3})));
  CHECK(sim::nccl_unfinished().size() == 1);
  ranks.end_epoch(0);
  SimDevices::finish();  // would wait for ever
  CHECK(sim::nccl_unfinished().empty());
  const auto after = [&] { (void)ranks.first->send(Rank(1), on_device(0, torch::ones({3}))); };
  CHECK(thrown_by(after) == Errc::WorkerAborted);
  ranks.end_epoch(1);
  ranks.connect({.plan = kStep.plan, .epoch = Epoch(3), .submission = Submission(10)});
  const at::Tensor ticket = ranks.first->send(Rank(1), on_device(0, torch::ones({3})));
  CHECK(torch::equal(ranks.second->receive(Rank(0), ticket).cpu(), torch::ones({3})));
}

TEST_CASE("a standstill of the devices is an error that says what each stream runs",
          "[sim][nccl]") {
  const SimDevices devices({.standstill = std::chrono::milliseconds(20)});
  TwoRanks ranks;
  ranks.connect();
  SimDevices::finish();
  (void)ranks.first->send(Rank(1), on_device(0, torch::ones({3})));
  try {
    SimDevices::finish();
    FAIL("the send has ended without its receive");
  } catch (const std::runtime_error& error) {
    CHECK_THAT(error.what(),
               ContainsSubstring("stand still; sim:0") && ContainsSubstring("runs ncclSend"));
  }
  ranks.end_epoch(0);
  ranks.end_epoch(1);
}

TEST_CASE("a rank that connects alone ends with its step, or after its patience",
          "[sim][nccl][failure]") {
  const SimDevices devices;
  SECTION("the step is given up") {
    TwoRanks ranks;
    auto alone = std::async(std::launch::async, [&] { ranks.first_end.connect(kStep); });
    ranks.end_epoch(0);
    CHECK(thrown_by([&] { alone.get(); }) == Errc::WorkerAborted);
  }
  SECTION("nobody gives it up") {
    TwoRanks ranks(std::chrono::milliseconds(20));
    CHECK(thrown_by([&] { ranks.first_end.connect(kStep); }) == Errc::ClusterTimeout);
  }
  SECTION("its peer ends while NCCL connects") {
    TwoRanks ranks;
    // Rank 1 greets and hears the id, but never joins.
    const auto peer = ranks.network.endpoint(Rank(1));
    Tag tag = kStep;
    tag.edge = EdgeId(std::numeric_limits<std::int32_t>::min());
    peer->send(Rank(0), tag, torch::ones({5}, at::kByte));
    auto alone = std::async(std::launch::async, [&] { ranks.first_end.connect(kStep); });
    (void)peer->receive(Rank(0), tag).get();
    (void)peer->receive(Rank(0), tag).get();  // the id: rank 0 joins now
    ranks.end_epoch(0);
    CHECK(thrown_by([&] { alone.get(); }) == Errc::WorkerAborted);
  }
}

}  // namespace
}  // namespace stagecraft::tests
