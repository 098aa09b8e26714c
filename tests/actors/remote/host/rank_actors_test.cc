#include "stagecraft/actors/remote/host/rank_actors.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>

#include "stagecraft/actors/remote/wire/delivery.h"
#include "stagecraft/actors/remote/wire/message_stream.h"
#include "stagecraft/actors/remote/wire/payload_transfer.h"
#include "stagecraft/actors/remote/wire/remote_tags.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {

/// Makes values of a size.
class Writer {
 public:
  std::string text(std::int64_t size) { return std::string(static_cast<std::size_t>(size), 'x'); }
  double sum(const at::Tensor& tensor) { return static_cast<double>(tensor.numel()); }
  using Remote = stagecraft::Remote<Writer(), &Writer::text, &Writer::sum>;
};

namespace {

constexpr Rank kMe{0}, kOther{1};

/// A rank's actors, and the driver's end as a list of outcomes.
class Played {
 public:
  Played() {
    stream_->listen(
        [seen = seen_](RemoteMessage message) {
          auto& outcome = std::get<Outcome>(message);
          const std::scoped_lock lock(seen->mutex);
          seen->outcomes[outcome.call].push_back(std::move(outcome));
          seen->changed.notify_all();
        },
        [seen = seen_](const Error& error) {
          const std::scoped_lock lock(seen->mutex);
          seen->ended = error.code();
          seen->changed.notify_all();
        });
    send(MakeActor{.call = CallId(1),
                   .actor = ActorId(1),
                   .type = "stagecraft::Writer",
                   .methods = {"stagecraft::Writer::text", "stagecraft::Writer::sum"},
                   .concurrency = 1,
                   .arguments = {}});
    CHECK(outcome(1).error.empty());
  }
  ~Played() {
    driver_->close(Error(Errc::Cancelled, "over"));
    other_->close(Error(Errc::Cancelled, "over"));
  }
  Played(const Played&) = delete;
  Played& operator=(const Played&) = delete;

  void send(const RemoteMessage& message) { stream_->send(message); }
  void call(std::int64_t id, std::uint32_t method, std::vector<Argument> arguments) {
    send(CallMethod{.call = CallId(id),
                    .actor = ActorId(1),
                    .method = method,
                    .arguments = std::move(arguments)});
  }
  /// Returns the outcome of a call: the n-th, from 0.
  Outcome outcome(std::int64_t id, std::size_t n = 0) {
    wait([&] { return seen_->outcomes[CallId(id)].size() > n; });
    const std::scoped_lock lock(seen_->mutex);
    return seen_->outcomes[CallId(id)][n];
  }
  [[nodiscard]] std::size_t outcomes(std::int64_t id) {
    const std::scoped_lock lock(seen_->mutex);
    return seen_->outcomes[CallId(id)].size();
  }
  /// Waits for the end of the rank's stream.
  Errc end() {
    wait([&] { return seen_->ended.has_value(); });
    return *seen_->ended;
  }
  /// Starts another side of the rank at the same end.
  void restart() {
    actors_.emplace(network_.endpoint(kMe), Epoch(2), types<Writer>(), step_values_);
  }
  [[nodiscard]] const std::shared_ptr<Transport>& driver() const { return driver_; }
  /// Puts a value as a training step of the rank does.
  void put(std::int64_t submission, MadeValues values) {
    step_values_->put({PlanId(9), kMe, Submission(submission)}, std::move(values));
  }
  /// Receives a delivery as the other rank.
  Delivered delivered(std::int64_t id) {
    const auto arrived =
        receive_payload(other_, kMe, delivery_tag(kOther, Epoch(5), DeliveryId(id)));
    REQUIRE(arrived.wait_until(patience()));
    return unpack<Delivered>(arrived.get());
  }
  /// Sends a delivery as the other rank.
  void deliver(std::int64_t id, const Delivered& delivered) {
    send_delivery(*other_, kMe, Epoch(1), DeliveryId(id), delivered);
  }

 private:
  /// Also for a thread that still takes a message when the test is over.
  struct Seen {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<CallId, std::vector<Outcome>> outcomes;
    std::optional<Errc> ended;
  };

  template <class Condition>
  void wait(const Condition& condition) {
    std::unique_lock lock(seen_->mutex);
    REQUIRE(Clock::steady()->wait_until(seen_->changed, lock, patience(), condition));
  }

  const std::shared_ptr<Seen> seen_ = std::make_shared<Seen>();
  const std::shared_ptr<StepValues> step_values_ = std::make_shared<StepValues>();
  const InprocNetwork network_{2};
  const std::shared_ptr<Transport> driver_ = network_.endpoint(kDriver);
  const std::shared_ptr<Transport> other_ = network_.endpoint(kOther);
  const std::shared_ptr<MessageStream> stream_ =
      std::make_shared<MessageStream>(driver_, kMe, Epoch(1));
  std::optional<RankActors> actors_{
      std::in_place, network_.endpoint(kMe), Epoch(1), types<Writer>(), step_values_};
};

std::int64_t number_of_elements(const Outcome& outcome) {
  return unpack<at::Tensor>(*outcome.value).numel();
}

Errc failed_as(const ErrorChain& chain) {
  REQUIRE_FALSE(chain.empty());
  return to_error(chain).code();
}

TEST_CASE("a small value comes with the outcome, a large one when it is wanted (RK-2)",
          "[remote][host]") {
  Played rank;
  rank.call(2, 0, {pack(std::int64_t{10})});
  REQUIRE(rank.outcome(2).value.has_value());
  CHECK(unpack<std::string>(*rank.outcome(2).value).size() == 10);
  rank.call(3, 0, {pack(std::int64_t{100'000})});
  CHECK_FALSE(rank.outcome(3).value.has_value());
  rank.send(WantValue{CallId(3)});
  CHECK(unpack<std::string>(*rank.outcome(3, 1).value).size() == 100'000);
  rank.send(WantValue{CallId(3)});
  rank.send(WantValue{CallId(77)});  // that was never made
  rank.call(4, 0, {pack(std::int64_t{1})});
  (void)rank.outcome(4);
  CHECK(rank.outcomes(3) == 2);
}

TEST_CASE("a value is there until it is released; passings that were asked for take place (RK-1)",
          "[remote][host]") {
  Played rank;
  rank.call(2, 0, {pack(std::int64_t{100'000})});
  rank.send(ForwardValue{CallId(2), kOther, Epoch(5), DeliveryId(1)});
  rank.send(ReleaseValues{{CallId(2)}});
  rank.send(ForwardValue{CallId(2), kOther, Epoch(5), DeliveryId(2)});
  CHECK(unpack<std::string>(rank.delivered(1).value).size() == 100'000);
  CHECK(failed_as(rank.delivered(2).error) == Errc::Internal);
}

TEST_CASE("calls that cannot be are answered by an error", "[remote][host][failure]") {
  Played rank;
  rank.call(2, 9, {pack(std::int64_t{1})});
  CHECK(failed_as(rank.outcome(2).error) == Errc::WireFormat);
  rank.call(3, 0, {});
  CHECK(failed_as(rank.outcome(3).error) == Errc::WireFormat);
  rank.call(4, 0, {pack(std::string("no number"))});
  CHECK(failed_as(rank.outcome(4).error) == Errc::WireFormat);
  rank.call(5, 0, {KeptArgument{CallId(99)}});
  CHECK(failed_as(rank.outcome(5).error) == Errc::Internal);
  rank.send(EndActor{ActorId(1)});
  rank.call(6, 0, {pack(std::int64_t{1})});
  CHECK(failed_as(rank.outcome(6).error) == Errc::UsageArgument);
}

TEST_CASE("the loss of a rank ends waits for its earlier passings, and not for later ones (RK-3)",
          "[remote][host][failure]") {
  Played rank;
  const Delivered value{.error = {}, .value = pack(at::ones(5))};
  rank.call(2, 1, {DeliveredArgument{kOther, DeliveryId(1)}});
  rank.send(RankLost{.rank = kOther,
                     .before = DeliveryId(3),
                     .why = to_chain(Error(Errc::WorkerLost, "rank 1 is lost"))});
  CHECK(failed_as(rank.outcome(2).error) == Errc::WorkerLost);
  rank.call(3, 1, {DeliveredArgument{kOther, DeliveryId(2)}});
  CHECK(failed_as(rank.outcome(3).error) == Errc::WorkerLost);
  rank.call(4, 1, {DeliveredArgument{kOther, DeliveryId(3)}});
  rank.deliver(3, value);
  CHECK(unpack<double>(*rank.outcome(4).value) == 5.0);
  rank.call(5, 1, {DeliveredArgument{kOther, DeliveryId(4)}});
  rank.deliver(4, {.error = to_chain(Error(Errc::NonFinite, "not a number")), .value = {}});
  CHECK(failed_as(rank.outcome(5).error) == Errc::NonFinite);
}

TEST_CASE("a rank that cannot read a message says so, and fails what waits",
          "[remote][host][failure]") {
  Played rank;
  rank.call(2, 1, {DeliveredArgument{kOther, DeliveryId(1)}});
  rank.send(Outcome{.call = CallId(9), .error = {}, .value = {}});
  CHECK(rank.end() == Errc::WireFormat);
}

TEST_CASE("a rank that is started again takes the messages of its new generation",
          "[remote][host]") {
  Played rank;
  rank.restart();
  rank.call(2, 0, {pack(std::int64_t{1})});  // of the generation before
  const auto stream = std::make_shared<MessageStream>(rank.driver(), kMe, Epoch(2));
  const auto answered = std::make_shared<Promise<Errc>>();
  stream->listen(
      [answered](const RemoteMessage& message) {
        answered->set_value(failed_as(std::get<Outcome>(message).error));
      },
      [](const Error&) {});
  stream->send(CallMethod{.call = CallId(1), .actor = ActorId(1), .method = 0, .arguments = {}});
  CHECK(answered->future().get() == Errc::UsageArgument);  // the actor ended with the other one
  CHECK(rank.outcomes(2) == 0);
}

TEST_CASE("a cancelled call does not run, and its wait for an argument ends", "[remote][host]") {
  Played rank;
  rank.call(2, 1, {DeliveredArgument{kOther, DeliveryId(1)}});
  rank.call(3, 0, {pack(std::int64_t{1})});
  rank.send(CancelCall{CallId(3)});
  CHECK(failed_as(rank.outcome(3).error) == Errc::Cancelled);
  rank.send(CancelCall{CallId(2)});
  CHECK(failed_as(rank.outcome(2).error) == Errc::Cancelled);
  rank.call(4, 0, {pack(std::int64_t{1})});
  CHECK(rank.outcome(4).error.empty());
  rank.send(CancelCall{CallId(4)});  // too late
  rank.call(5, 0, {pack(std::int64_t{1})});
  CHECK(rank.outcome(5).error.empty());
  CHECK(rank.outcomes(4) == 1);
}

TEST_CASE("values of a step are the rank's values, before and after the step", "[remote][host]") {
  Played rank;
  const StepValueName loss{kLossValue, Microbatch(1)}, output{0, Microbatch(1)};
  const auto take = [&](std::int64_t first, std::int64_t submission) {
    rank.send(TakeStepValues{.first = CallId(first),
                             .plan = PlanId(9),
                             .submission = Submission(submission),
                             .values = {loss, output}});
  };
  const MadeValues made{{loss, at::ones({})}, {output, at::ones({2, 3})}};
  const bool is_early = GENERATE(true, false);
  if (is_early) {
    take(10, 4);
    rank.call(12, 1, {KeptArgument{CallId(11)}});  // a call that waits for the step
    rank.put(4, made);
  } else {
    rank.put(4, made);
    take(10, 4);
    rank.call(12, 1, {KeptArgument{CallId(11)}});
  }
  CHECK_FALSE(rank.outcome(10).value);  // it stays
  CHECK(rank.outcome(11).error.empty());
  CHECK(unpack<double>(*rank.outcome(12).value) == 6);
  rank.send(WantValue{CallId(10)});
  CHECK(number_of_elements(rank.outcome(10, 1)) == 1);
  rank.put(5, {{loss, at::ones({})}});
  take(20, 5);
  CHECK(rank.outcome(20).error.empty());
  CHECK(failed_as(rank.outcome(21).error) == Errc::Internal);
}

TEST_CASE("values of a step that fails have its error, also in calls", "[remote][host]") {
  Played rank;
  rank.send(TakeStepValues{.first = CallId(10),
                           .plan = PlanId(9),
                           .submission = Submission(4),
                           .values = {{kLossValue, Microbatch(0)}}});
  rank.call(12, 1, {KeptArgument{CallId(10)}});
  rank.send(CancelCall{CallId(10), to_chain(Error(Errc::WorkerFailed, "a stage threw"))});
  CHECK(failed_as(rank.outcome(10).error) == Errc::WorkerFailed);
  CHECK(failed_as(rank.outcome(12).error) == Errc::WorkerFailed);
  rank.put(4, {{{kLossValue, Microbatch(0)}, at::ones({})}});  // too late
  rank.call(13, 0, {pack(std::int64_t{1})});
  CHECK(rank.outcome(13).error.empty());
  CHECK(rank.outcomes(10) == 1);
}

}  // namespace
}  // namespace stagecraft
