#include "stagecraft/futures/transport/inproc.h"

#include <thread>

#include <ATen/ops/empty.h>

#include "stagecraft/tests/conformance/transport_forms.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

constexpr Tag kInprocTag{
    .epoch = Epoch{0}, .submission = Submission{1}, .edge = EdgeId{2}, .microbatch = Microbatch{3}};

TEST_CASE("the in-process transport hands tensors over without a copy", "[futures][transport]") {
  const Endpoints net = in_one_process(2);
  CHECK(net.ranks[0]->hands_over(Rank{1}));
  const bool posted_first = GENERATE(false, true);
  Future<at::Tensor> arrival;
  if (posted_first) {
    arrival = net.ranks[1]->receive(Rank{0}, kInprocTag);
  }
  at::Tensor sent = at::empty({1024, 256}, at::kFloat);
  const void* const data = sent.const_data_ptr();
  net.ranks[0]->send(Rank{1}, kInprocTag, std::move(sent));
  if (!posted_first) {
    arrival = net.ranks[1]->receive(Rank{0}, kInprocTag);
  }
  REQUIRE(arrival.ready());
  CHECK(arrival.get().const_data_ptr() == data);
}

TEST_CASE("nothing keeps a tensor once it is received or dropped", "[futures][transport]") {
  const Endpoints net = in_one_process(2);
  const at::Tensor watched = number(1);
  net.ranks[0]->send(Rank{1}, kInprocTag, watched);
  CHECK(watched.use_count() == 2);
  SECTION("received") {
    CHECK(number_from(net.ranks[1]->receive(Rank{0}, kInprocTag)) == 1);
  }
  SECTION("aborted") {
    net.ranks[1]->advance(PlanId{}, Epoch{1}, Error(Errc::WorkerFailed, "aborted"));
  }
  SECTION("closed") {
    net.ranks[1]->close(Error(Errc::ClusterClosed, "closed"));
  }
  CHECK(watched.use_count() == 1);
}

TEST_CASE("a tensor for a closed rank is counted as refused", "[futures][transport]") {
  const Endpoints net = in_one_process(2);
  net.ranks[1]->close(Error(Errc::ClusterClosed, "closed"));
  net.ranks[0]->send(Rank{1}, kInprocTag, number(1));
  CHECK(net.ranks[1]->refused() == 1);
  CHECK(net.ranks[0]->refused() == 0);
}

TEST_CASE("errors name the peers, the driver too", "[futures][transport]") {
  using Catch::Matchers::ContainsSubstring;
  const Endpoints net = in_one_process(2);
  const Future<at::Tensor> from_driver = net.ranks[0]->receive(kDriver, kInprocTag);
  const Future<at::Tensor> from_rank = net.ranks[0]->receive(Rank{1}, kInprocTag);
  net.ranks[0]->close(Error(Errc::ClusterClosed, "closed"));
  CHECK_THROWS_WITH(from_driver.get(), ContainsSubstring("peer the driver"));
  CHECK_THROWS_WITH(from_rank.get(), ContainsSubstring("peer rank 1"));
  CHECK_THROWS_WITH(net.driver->send(Rank{5}, kInprocTag, number(1)),
                    ContainsSubstring("expected the driver or a rank from 0 to 1"));
  CHECK_THROWS_WITH(net.ranks[1]->send(kDriver, kInprocTag, at::Tensor()),
                    ContainsSubstring("an undefined tensor to the driver"));
}

TEST_CASE("two ends of one rank share a mailbox", "[futures][transport]") {
  const InprocNetwork network(1);
  network.endpoint(kDriver)->send(Rank{0}, kInprocTag, number(1));
  CHECK(network.endpoint(Rank{0})->bytes_waiting() == 8);
  CHECK(number_from(network.endpoint(Rank{0})->receive(kDriver, kInprocTag)) == 1);
}

TEST_CASE("a receive that outlives its network fails", "[futures][transport]") {
  Future<at::Tensor> arrival;
  {
    const Endpoints net = in_one_process(2);
    arrival = net.ranks[1]->receive(Rank{0}, kInprocTag);
  }
  REQUIRE(arrival.ready());
  CHECK(failure_of(arrival) == Errc::TransportClosed);
}

TEST_CASE("a receive that failed says where and why", "[futures][transport]") {
  const Endpoints net = in_one_process(2);
  const Future<at::Tensor> receive = net.ranks[1]->receive(Rank{0}, kInprocTag);
  net.ranks[1]->advance(PlanId{}, Epoch{1}, Error(Errc::WorkerFailed, "rank 0 ran out of memory"));
  CHECK_THROWS_MATCHES(
      receive.get(),
      Error,
      Catch::Matchers::Message(
          "the receive of edge 2, microbatch 3, submission 1, epoch 0, plan 0 ended: the "
          "epoch is over (microbatch 3, peer rank 0); because rank 0 "
          "ran out of memory"));
}

TEST_CASE("a network has no end for a rank it does not have", "[futures][transport]") {
  const InprocNetwork network(2);
  const Rank rank = GENERATE(Rank{2}, Rank{-2});
  CHECK(thrown_by([&] { static_cast<void>(network.endpoint(rank)); }) == Errc::TransportRefused);
  CHECK(thrown_by([] { const InprocNetwork impossible(-1); }) == Errc::Internal);
}

}  // namespace
}  // namespace stagecraft
