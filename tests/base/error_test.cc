#include "stagecraft/base/error.h"

#include <set>
#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

TEST_CASE("the innermost layer's context stays, outer layers add what is missing",
          "[base][error]") {
  Error error(Errc::DeviceOutOfMemory, "needs 2 GiB, has 1 GiB; use fewer microbatches in flight");
  error.with({.stage = StageId(2), .microbatch = Microbatch(5)});
  error.with({.rank = Rank(1), .stage = StageId(9), .step = Step(7)});

  CHECK(error.context() ==
        ErrorContext{
            .rank = Rank(1), .stage = StageId(2), .microbatch = Microbatch(5), .step = Step(7)});
  CHECK_THAT(error.what(), EndsWith("(rank 1, stage 2, microbatch 5, step 7)"));
}

TEST_CASE("an error without context or cause prints its message alone", "[base][error]") {
  CHECK(std::string(Error(Errc::UsageArgument, "--stages wants 1 or more, got 0").what()) ==
        "--stages wants 1 or more, got 0");
}

TEST_CASE("task and peer are part of where it happened", "[base][error]") {
  Error error(Errc::TransportClosed, "the peer closed the link");
  error.with({.task = "1B3", .peer = "rank 2"});
  CHECK_THAT(error.what(), ContainsSubstring("task 1B3, peer rank 2"));
}

TEST_CASE("the cause is rendered after the error, with its own context and cause",
          "[base][error]") {
  Error root(Errc::DeviceFailed, "the operator mm threw");
  root.with({.stage = StageId(1)});
  Error middle(Errc::WorkerFailed, "the worker cannot continue");
  middle.because(root);
  Error top(Errc::WorkerAborted, "the step was aborted");
  top.because(middle).with({.step = Step(3)});

  CHECK(
      std::string(top.what()) ==
      "the step was aborted (step 3); because the worker cannot continue; because the operator mm "
      "threw (stage 1)");
  REQUIRE(top.cause() != nullptr);
  REQUIRE(top.cause()->cause() != nullptr);
  CHECK(top.cause()->cause()->code() == Errc::DeviceFailed);
}

TEST_CASE("an error names its option by a key, and its advice is a part of its own",
          "[base][error]") {
  Error error(Errc::ClusterTimeout, "the step was late; set a longer {option}");
  CHECK(error.message() == "the step was late; set a longer {option}");
  error.about("step_deadline").advise("trainer.load(file)").with({.rank = Rank(1)});
  CHECK(error.option() == "step_deadline");
  CHECK(error.message() == "the step was late; set a longer step_deadline");
  CHECK(error.text() == "the step was late; set a longer {option}");
  CHECK(std::string(error.what()) ==
        "the step was late; set a longer step_deadline; to continue: trainer.load(file) (rank 1)");
}

TEST_CASE("a reader with other words gets them in the error and in its causes", "[base][error]") {
  Error cause(Errc::UsageArgument, "{option} is 0");
  cause.about("memory_limit").advise("trainer.load(file)");
  Error error(Errc::WorkerFailed, "memory_limit is a word of the text");
  error.with({.rank = Rank(1)}).because(cause);

  const Error told =
      in_words(error, {.options = {{"memory_limit", "--memory-limit"}}, .advice = "start again"});
  CHECK(std::string(told.what()) ==
        "memory_limit is a word of the text (rank 1); because --memory-limit is 0; to continue: "
        "start again");
  CHECK(std::string(in_words(error, {}).what()) ==
        "memory_limit is a word of the text (rank 1); because memory_limit is 0");
  CHECK(std::string(error.cause()->what()) == "memory_limit is 0; to continue: trainer.load(file)");
}

TEST_CASE("a copied error keeps message, context and cause", "[base][error]") {
  Error original(Errc::WorkerLost, "no answer for 5 s");
  original.with({.rank = Rank(3)}).because(Error(Errc::TransportClosed, "end of stream"));
  const Error copy = original;
  original.with({.step = Step(1)});

  CHECK(std::string(copy.what()) == "no answer for 5 s (rank 3); because end of stream");
  CHECK(copy == original);  // equal by code
}

TEST_CASE("every code has a family and a name of its own", "[base][error]") {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Errc::Internal); ++i) {
    const Errc code = static_cast<Errc>(i);
    CAPTURE(i);
    CHECK(names.insert(to_string(code)).second);
    CHECK((family(code) == ErrorFamily::Internal) == (code == Errc::Internal));
  }
  CHECK(family(Errc::ScheduleInvalid) == ErrorFamily::Schedule);
  CHECK(family(Errc::NonFinite) == ErrorFamily::Worker);
  CHECK(family(Errc::CheckpointFormat) == ErrorFamily::Usage);
}

}  // namespace
}  // namespace stagecraft
