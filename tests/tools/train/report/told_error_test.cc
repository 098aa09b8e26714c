#include "stagecraft/tools/train/report/told_error.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kLost =
    "rank 1 is lost: process 4711 was killed by signal 9 (Killed); to go on: "
    "cluster.replace(Rank(1)), then trainer.load(file)";

TEST_CASE("a user of train is told what a user of train can do about a lost worker",
          "[tools][train]") {
  Error error(Errc::WorkerLost, "the weights are undefined; to go on: trainer.load(file)");
  error.with({.rank = Rank(1)}).because(Error(Errc::WorkerLost, kLost));
  const Error told = told_error(error, TrainOptions());
  CHECK(told.code() == Errc::WorkerLost);
  CHECK(told.context() == error.context());
  CHECK(told.message() ==
        "the weights are undefined; to go on: start the run again; with --resume DIR --save-every "
        "N it would resume from its last checkpoint");
  REQUIRE(told.cause() != nullptr);
  CHECK_THAT(told.cause()->message(),
             ContainsSubstring("was killed by signal 9 (Killed); to go on: start the run again") &&
                 !ContainsSubstring("cluster.replace") && !ContainsSubstring("trainer.load"));
  for (const char* text :
       {"worker-1 of this cluster is lost; to go on: put another worker process in its place with "
        "cluster.replace",
        "no step is run without rank 2, whose worker is lost; to go on: "
        "cluster.replace(Rank(2))"}) {
    CHECK_THAT(told_error(Error(Errc::ClusterMember, text), TrainOptions()).message(),
               ContainsSubstring("is lost; to go on: start the run again") &&
                   !ContainsSubstring("replace"));
  }
}

TEST_CASE("a run that keeps checkpoints is told that it resumes from the last one",
          "[tools][train]") {
  TrainOptions options;
  options.save_dir = "runs";
  CHECK(told_error(Error(Errc::WorkerLost, kLost), options).message() ==
        "rank 1 is lost: process 4711 was killed by signal 9 (Killed); to go on: start the run "
        "again, and it resumes from its last checkpoint");
}

TEST_CASE("fields of a program are options of train", "[tools][train]") {
  CHECK(told_error(Error(Errc::ClusterTimeout, "raise step_deadline"), TrainOptions()).message() ==
        "raise --step-deadline");
}

}  // namespace
}  // namespace stagecraft::tools
