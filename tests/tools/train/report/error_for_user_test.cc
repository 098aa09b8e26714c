#include "stagecraft/tools/train/report/error_for_user.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kAdvice = "cluster.replace(Rank(1)), then trainer.load(file)";

Error lost_rank() {
  return Error(Errc::WorkerLost, "rank 1 is lost: process 4711 was killed by signal 9 (Killed)")
      .advise(kAdvice);
}

TEST_CASE("a user of train is told what a user of train can do about a lost worker",
          "[tools][train]") {
  Error error(Errc::WorkerLost, "the weights are undefined");
  error.advise("trainer.load(file)").with({.rank = Rank(1)}).because(lost_rank());
  const Error told = error_for_user(error, TrainOptions());
  CHECK(told.code() == Errc::WorkerLost);
  CHECK(told.context() == error.context());
  CHECK_THAT(told.what(),
             ContainsSubstring("the weights are undefined; to continue: start the run again; with "
                               "--resume DIR --save-every N it would resume from its last "
                               "checkpoint (rank 1); because rank 1 is lost") &&
                 !ContainsSubstring("trainer.load") && !ContainsSubstring("cluster.replace"));
  REQUIRE(told.cause() != nullptr);
  CHECK(told.cause()->advice() == told.advice());
}

TEST_CASE("a run that keeps checkpoints is told the words that continue it", "[tools][train]") {
  TrainOptions options;
  const auto advice = [&] { return error_for_user(lost_rank(), options).advice(); };
  options.keeping.save_dir = "runs";
  CHECK(advice() ==
        "start the run again; with --resume runs --save-every N it would resume from its last "
        "checkpoint");
  options.keeping.save_every = 50;
  CHECK(advice() == "start the run again with --resume runs; it resumes from its last checkpoint");
  options.keeping.load = "a.ckpt";
  CHECK_THAT(advice(),
             ContainsSubstring("with --resume runs instead of --load a.ckpt; it resumes"));
  options.keeping.load.reset();
  options.keeping.resume = "earlier";
  CHECK_THAT(advice(), ContainsSubstring("with --resume runs instead of --resume earlier; it"));
  options.keeping.resume = "runs";
  CHECK(advice() == "start the run again; it resumes from its last checkpoint");
  options.keeping.run_dir = "runs/a";
  options.keeping.save_every.reset();
  CHECK(advice() ==
        "start the run again; with --run-dir runs/a --save-every N it would resume from its last "
        "checkpoint");
}

TEST_CASE("an error without advice gets none", "[tools][train]") {
  CHECK(error_for_user(Error(Errc::NonFinite, "the loss is NaN"), TrainOptions()).advice().empty());
}

TEST_CASE("fields of a program are options of train", "[tools][train]") {
  const Error late =
      Error(Errc::ClusterTimeout, "set a longer {option}, not a longer state_deadline")
          .about("step_deadline");
  CHECK(error_for_user(late, TrainOptions()).message() ==
        "set a longer --step-deadline, not a longer state_deadline");
  const Error unknown = Error(Errc::UsageArgument, "{option} is 0").about("outstanding");
  CHECK(error_for_user(unknown, TrainOptions()).message() == "outstanding is 0");
}

}  // namespace
}  // namespace stagecraft::tools
