/// Tests that a run uses what its job has made.
#include "stagecraft/tools/train/job/job.h"

#include <sstream>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/train/options/parse_options.h"
#include "stagecraft/tools/train/run/run.h"

namespace stagecraft::tools {
namespace {

TEST_CASE("the run of a job trains by the job's plan, and lowers nothing again",
          "[tools][train][job]") {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  const auto options = std::get<TrainOptions>(parse_train_options(
      {"--ranks", "2", "--layers", "2", "--dim", "16", "--heads", "2", "--ffn", "32"}));
  const TrainJob job = make_job(options, find_start(options, console), console);
  CHECK(job.execution.schedule == job.choice.schedule);
  REQUIRE(job.execution.plan.use_count() == 1);
  const TrainRun run(job, Cluster::local(job.choice.layout.ranks()), nullptr, console);
  CHECK(job.execution.plan.use_count() > 1);  // the trainer of the run holds it too
}

}  // namespace
}  // namespace stagecraft::tools
