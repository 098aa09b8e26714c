#include "stagecraft/actors/driver/step_ledger.h"

#include <thread>

#include <ATen/ops/full.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

StepInput input_with(at::Tensor tensor) {
  return {.inputs = {{std::move(tensor)}}, .labels = {}};
}

TEST_CASE("a step completes once, and a commit is counted before that (SL-1, SL-3)",
          "[actors][ledger]") {
  StepLedger ledger;
  const EnteredStep entered = ledger.enter({}, 1);
  std::int64_t committed = -1;
  entered.result.on_ready([&] { committed = ledger.committed(); });
  ledger.complete(entered.submission, {.step = 1}, true);
  CHECK(committed == 1);
  ledger.fail(entered.submission, Error(Errc::WorkerFailed, "late"));
  CHECK(entered.result.get().step == 1);
}

TEST_CASE("inputs are handed over once and kept by nobody afterwards (SL-2)", "[actors][ledger]") {
  StepLedger ledger;
  const at::Tensor watched = number(1);
  const EnteredStep entered = ledger.enter(input_with(watched), 1);
  CHECK(watched.use_count() == 2);
  CHECK(ledger.start(entered.submission));
  CHECK_FALSE(ledger.start(entered.submission));
  CHECK(watched.use_count() == 1);
}

TEST_CASE("entering waits while as many steps as allowed are under way", "[actors][ledger]") {
  StepLedger ledger;
  const EnteredStep first = ledger.enter({}, 1);
  EnteredStep second;
  std::thread other([&] { second = ledger.enter({}, 1); });
  ledger.complete(first.submission, {}, false);
  other.join();
  CHECK(first.result.ready());
  CHECK(second.submission > first.submission);
  CHECK(ledger.committed() == 0);
}

TEST_CASE("the scale of losses follows the updates, and goes back with them", "[actors][ledger]") {
  StepLedger ledger(LossScaling{.initial = 8.0, .growth_interval = 2});
  const auto update = [&](bool skipped) {
    const EnteredStep entered = ledger.enter({}, 1);
    ledger.complete(entered.submission, {.skipped = skipped}, true);
    return ledger.loss_scale().factor;
  };
  CHECK(update(true) == 4.0);
  CHECK(update(false) == 4.0);
  CHECK(update(false) == 8.0);
  CHECK(update(true) == 4.0);
  CHECK(ledger.loss_scale() == LossScale{.factor = 4.0, .good = 0, .skipped = 2});
  ledger.complete(ledger.enter({}, 1).submission, {.skipped = true}, false);
  CHECK(ledger.loss_scale().factor == 4.0);
  ledger.resume(2);
  CHECK(ledger.loss_scale() == LossScale{.factor = 4.0, .good = 1, .skipped = 1});
  ledger.note_partial_update(true);  // recovery may go forward to it
  CHECK(ledger.loss_scale().factor == 4.0);
  ledger.resume(3);
  CHECK(ledger.loss_scale() == LossScale{.factor = 2.0, .good = 0, .skipped = 2});
  ledger.resume(7, LossScale{.factor = 2.0, .good = 1, .skipped = 5});
  CHECK(update(false) == 4.0);
  CHECK(ledger.loss_scale().good == 0);
}

TEST_CASE("updates of groups follow those that change weights, and go back with them",
          "[actors][ledger]") {
  StepLedger ledger(LossScaling{.initial = 8.0},
                    GroupUpdates({{.match = "a"}, {.match = "b"}}, {"a", "b"}));
  using UpdateNumbers = std::vector<std::int64_t>;
  const auto update = [&](const GroupFreezes& frozen, bool skipped = false) {
    const Submission submission = ledger.enter({}, 1).submission;
    UpdateNumbers numbers = ledger.begin_update(frozen);
    ledger.complete(submission, {.skipped = skipped}, true);
    return numbers;
  };
  CHECK(update({true}) == UpdateNumbers{0, 1});
  CHECK(update({true}, /*skipped=*/true) == UpdateNumbers{0, 2});
  CHECK(update({true}) == UpdateNumbers{0, 2});
  CHECK(ledger.frozen_updates() == FrozenUpdates{{"a", 2}});
  CHECK(update({}) == UpdateNumbers{1, 3});
  CHECK(ledger.begin_update({false, true}) == UpdateNumbers{2, 0});
  ledger.fail(ledger.enter({}, 1).submission, Error(Errc::WorkerFailed, "before the vote"));
  CHECK(update({}) == UpdateNumbers{2, 4});
  CHECK(ledger.begin_update({false, true}) == UpdateNumbers{3, 0});
  ledger.note_partial_update(/*skipped=*/false);
  ledger.resume(6);  // recovery goes forward to it
  CHECK(ledger.frozen_updates() == FrozenUpdates{{"a", 2}, {"b", 1}});
  ledger.resume(1);
  CHECK(ledger.frozen_updates() == FrozenUpdates{{"a", 1}});
  CHECK(update({}) == UpdateNumbers{1, 2});
  ledger.resume(9, LossScale{.factor = 8.0, .skipped = 1}, FrozenUpdates{{"b", 3}});
  CHECK(update({}) == UpdateNumbers{9, 6});
  CHECK(thrown_by([&] { (void)ledger.begin_update({true, true}); }) == Errc::UsageArgument);
}

TEST_CASE("closing cancels what is under way, wakes who waits and takes nothing more",
          "[actors][ledger]") {
  StepLedger ledger;
  const EnteredStep entered = ledger.enter({}, 1);
  std::optional<Errc> refused;
  std::thread other([&] { refused = thrown_by([&] { (void)ledger.enter({}, 1); }); });
  ledger.close();
  other.join();
  CHECK(failure_of(entered.result) == Errc::Cancelled);
  CHECK(refused == Errc::ClusterClosed);
  CHECK_FALSE(ledger.start(entered.submission));
  ledger.drain();
}

TEST_CASE("a broken ledger fails what is under way and what comes later with its reason",
          "[actors][ledger]") {
  StepLedger ledger;
  const EnteredStep entered = ledger.enter({}, 1);
  ledger.break_down(Error(Errc::Internal, "broken"));
  ledger.close();
  CHECK(failure_of(entered.result) == Errc::Internal);
  CHECK(thrown_by([&] { (void)ledger.enter({}, 1); }) == Errc::Internal);
}

TEST_CASE("the first reason for lost weights stays until they are replaced", "[actors][ledger]") {
  StepLedger ledger;
  ledger.lose(Error(Errc::WorkerLost, "first"));
  ledger.lose(Error(Errc::WorkerLost, "second"));
  REQUIRE(ledger.lost());
  CHECK(ledger.lost()->message() == "first");
  ledger.resume(40);
  CHECK_FALSE(ledger.lost());
  CHECK(ledger.committed() == 40);
}

TEST_CASE("requests and submissions never share a number", "[actors][ledger]") {
  StepLedger ledger;
  const Submission a = ledger.enter({}, 9).submission;
  const Submission b = ledger.next_request();
  const Submission c = ledger.enter({}, 9).submission;
  CHECK(a < b);
  CHECK(b < c);
  ledger.close();
}

}  // namespace
}  // namespace stagecraft
