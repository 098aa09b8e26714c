/// Tests batches that ranks read where they run: they give the same bits as batches that the driver
/// sends, and none of them leaves that place; tests errors of a source.
#include "stagecraft/actors/data/local_source.h"

#include <string>
#include <vector>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/numbered_source.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

const ModelOptions kFourStages{.stages = 4, .dropout = 0.2};

LocalBatch local(std::int64_t number, const std::string& how = "whole") {
  static const bool registered = (register_numbered_source(), true);
  CHECK(registered);
  return {.source = kNumbered, .argument = how, .number = number};
}

Trainer trainer_on(const Cluster& cluster, const Program& program, const Schedule& schedule) {
  return {cluster, program, schedule, AdamW{.lr = 1e-2}, {.seed = 5, .mirror = true}};
}

StepFuture sent(Trainer& trainer, std::int64_t number) {
  const LabeledBatch batch = numbered_batch(number);
  return trainer.step(batch.inputs, batch.labels);
}

/// Trains on the batches of these numbers, read on `cluster` and sent to threads; two are under way
/// at a time.
void check_equal_to_sent(const Cluster& cluster,
                         const Program& program,
                         const Schedule& schedule,
                         const std::string& how) {
  Trainer reading = trainer_on(cluster, program, schedule);
  Trainer sending = trainer_on(Cluster::local(cluster.ranks()), program, schedule);
  std::vector<StepFuture> read, expected;
  for (const std::int64_t number : {0, 1, 2, 7, 7, 3}) {
    read.push_back(reading.step(local(number, how)));
    expected.push_back(sent(sending, number));
  }
  reading.accumulate(local(4, how));
  read.push_back(reading.step(local(5, how)));
  const LabeledBatch fourth = numbered_batch(4);
  sending.accumulate(fourth.inputs, fourth.labels);
  expected.push_back(sent(sending, 5));
  for (std::size_t i = 0; i < read.size(); ++i) {
    const StepResult a = read[i].get(), b = expected[i].get();
    CHECK(a.losses == b.losses);
    CHECK(a.mean_loss == b.mean_loss);
    CHECK(testing::same_norm(a.gradient_norm, b.gradient_norm));
  }
  CHECK(reading.steps() == 7);
  CHECK(same_bits(reading.state_dict(), sending.state_dict()));
}

TEST_CASE("batches that ranks read have the bits of those that are sent",
          "[integration][local-source]") {
  const auto* how = GENERATE("whole", "parts");
  const auto* schedule = GENERATE("1f1b", "own");
  CAPTURE(how, schedule);
  const Program program = make_program(kFourStages);
  check_equal_to_sent(Cluster::local(4), program, make_schedule(schedule, program), how);
}

TEST_CASE("each replica reads the microbatches that are its own", "[integration][local-source]") {
  const Program program = make_program({.stages = 2, .dropout = 0.2, .statistics = false});
  const int before = NumberedSource::parts_read;
  check_equal_to_sent(Cluster::local(2), program, dualpipe(2, kMicrobatches), "parts");
  CHECK(NumberedSource::parts_read > before);
}

TEST_CASE("each copy of a stage reads the microbatches that are its own",
          "[integration][local-source]") {
  const Program program = make_program({.stages = 2, .dropout = 0.2, .statistics = false});
  const int before = NumberedSource::parts_read;
  check_equal_to_sent(
      Cluster::local(4), program, in_copies(one_f_one_b(2, kMicrobatches / 2), 2), "parts");
  CHECK(NumberedSource::parts_read > before);
}

TEST_CASE("so have those that worker processes read", "[integration][local-source][processes]") {
  const auto* how = GENERATE("whole", "parts");
  const Program program = make_program(kFourStages);
  check_equal_to_sent(Cluster::spawn(4, {.program = STAGECRAFT_NUMBERED_WORKER}),
                      program,
                      make_schedule("1f1b", program),
                      how);
}

TEST_CASE("a rank that needs nothing of a batch makes no source", "[integration][local-source]") {
  const Program program = make_program(kFourStages);
  Trainer trainer = trainer_on(Cluster::local(4), program, make_schedule("1f1b", program));
  const int before = NumberedSource::made;
  (void)trainer.step(local(0)).get();
  (void)trainer.step(local(1)).get();
  CHECK(NumberedSource::made == before + 2);  // the first stage has inputs, the last labels
}

std::int64_t sent_by_driver(const Cluster& cluster) {
  std::int64_t bytes = 0;
  for (const auto& [peer, link] : cluster.launcher()->traffic().links) {
    bytes += link.bytes_sent;
  }
  return bytes;
}

TEST_CASE("what ranks read does not leave from the driver",
          "[integration][local-source][processes]") {
  const Cluster cluster = Cluster::spawn(4, {.program = STAGECRAFT_NUMBERED_WORKER});
  const Program program = make_program(kFourStages);
  Trainer trainer = trainer_on(cluster, program, make_schedule("1f1b", program));
  (void)trainer.step(local(0)).get();
  const std::int64_t before = sent_by_driver(cluster);
  (void)trainer.step(local(1)).get();
  CHECK(sent_by_driver(cluster) == before);
  (void)sent(trainer, 2).get();
  CHECK(sent_by_driver(cluster) == before + 2 * 12 * 8);  // tokens and classes, int64
}

/// Makes a step fail, which changes nothing; the next step works.
Error failure_between_steps(const Cluster& cluster, const LocalBatch& batch) {
  const Program program = make_program(kFourStages);
  Trainer trainer = trainer_on(cluster, program, make_schedule("1f1b", program));
  (void)trainer.step(local(0, batch.argument == "breaks" ? "breaks" : "whole")).get();
  const StateDict before = trainer.state_dict();
  Error error = error_of(trainer.step(batch));
  CHECK(same_bits(trainer.state_dict(), before));
  CHECK(sent(trainer, 1).get().step == 2);
  CHECK(trainer.step(local(2)).get().step == 3);
  return error;
}

TEST_CASE("what a source throws fails the step, and says where", "[integration][local-source]") {
  const Error error = failure_between_steps(Cluster::local(4), local(1, "breaks"));
  CHECK(error.code() == Errc::WorkerFailed);
  CHECK(error.context().rank.has_value());
  CHECK(error.context().step == Step(1));
  CHECK_THAT(error.what(),
             ContainsSubstring("batch 1 of the source \"numbered\" (\"breaks\") cannot be read") &&
                 ContainsSubstring("the disk is gone"));
}

TEST_CASE("so does one that a worker process cannot make",
          "[integration][local-source][processes]") {
  const Cluster cluster = Cluster::spawn(4, {.program = STAGECRAFT_NUMBERED_WORKER});
  const Error error = failure_between_steps(cluster, local(0, "nowhere"));
  CHECK(error.code() == Errc::UsageFile);
  CHECK_THAT(error.what(),
             ContainsSubstring("there is no file 'nowhere'") && ContainsSubstring("by process") &&
                 ContainsSubstring("where this rank runs"));
}

TEST_CASE("a batch of another shape or type is refused as one that is sent",
          "[integration][local-source]") {
  const auto [how, expected] =
      GENERATE(std::pair("short", "input tensor 0 was compiled as int64 of shape [12]"),
               std::pair("floats", "this batch has float32 of shape [12]"));
  const Error error = failure_between_steps(Cluster::local(4), local(0, how));
  CHECK(error.code() == Errc::CompileShape);
  CHECK_THAT(error.what(), ContainsSubstring(expected));
}

TEST_CASE("a source that a rank's program does not know is named with it",
          "[integration][local-source][processes]") {
  const Program program = make_program(kFourStages);
  const Schedule schedule = make_schedule("1f1b", program);
  Trainer here = trainer_on(Cluster::local(4), program, schedule);
  CHECK_THAT(error_of(here.step({.source = "another"})).what(),
             ContainsSubstring("no source \"another\" is registered") &&
                 ContainsSubstring("integration") && ContainsSubstring("sc::register_source"));
  Trainer there = trainer_on(Cluster::spawn(4), program, schedule);  // the generic worker
  const Error error = error_of(there.step(local(0)));
  CHECK(error.code() == Errc::UsageArgument);
  CHECK_THAT(error.what(),
             ContainsSubstring("no source \"numbered\" is registered") &&
                 ContainsSubstring("/stagecraft on "));
  CHECK(sent(there, 0).get().step == 1);
}

TEST_CASE("recover() continues with the batch of its number", "[integration][local-source]") {
  const Program program = make_program(kFourStages);
  const Schedule schedule = make_schedule("1f1b", program);
  Trainer trainer = trainer_on(Cluster::local(4), program, schedule);
  Trainer unbroken = trainer_on(Cluster::local(4), program, schedule);
  for (std::int64_t number = 0; number < 4; ++number) {
    (void)trainer.step(local(number)).get();
    (void)sent(unbroken, number).get();
  }
  for (std::int64_t number = trainer.recover(); number < 6; ++number) {
    (void)trainer.step(local(number)).get();
  }
  (void)sent(unbroken, 4).get();
  (void)sent(unbroken, 5).get();
  CHECK(same_bits(trainer.state_dict(), unbroken.state_dict()));
}

TEST_CASE("sources and batches without a name are refused at once",
          "[integration][local-source][refusals]") {
  const Program program = make_program();
  Trainer trainer = trainer_on(Cluster::local(2), program, make_schedule("1f1b", program));
  CHECK_THAT(refusal([&] { (void)trainer.step({.source = ""}); }),
             ContainsSubstring("needs the name of a source"));
  CHECK_THAT(refusal([&] { (void)trainer.step(local(-1)); }), ContainsSubstring("from 0 on"));
  CHECK_THAT(refusal([] { register_source("", [](const auto&) { return nullptr; }); }),
             ContainsSubstring("expects a name"));
  CHECK_THAT(refusal([] { register_source("empty", nullptr); }), ContainsSubstring("no maker"));
  CHECK_THAT(refusal([] { register_numbered_source(); }), ContainsSubstring("registered already"));
}

}  // namespace
}  // namespace stagecraft::tests
