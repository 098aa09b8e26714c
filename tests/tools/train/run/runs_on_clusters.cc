#include "stagecraft/tests/tools/train/run/runs_on_clusters.h"

#include <sstream>
#include <variant>

#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/options/parse_options.h"
#include "stagecraft/tools/train/run/run.h"

// This include comes last: LibTorch has a CHECK of its own.
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

Ending ending_of(const std::string& output) {
  Ending ending;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json object = nlohmann::json::parse(line);
    if (object.at("event") == "verify") {
      ending.verified = object;
    } else if (object.at("event") == "done") {
      ending.sha256 = object.at("weights_sha256");
    }
  }
  return ending;
}

}  // namespace

std::vector<Ending> endings_on(const std::vector<Cluster>& clusters,
                               const std::vector<std::string>& words) {
  const SingleThreaded alone;
  std::istringstream in;
  std::ostringstream err;
  tools::Console aside{.in = in, .out = err, .err = err};
  const auto options = std::get<tools::TrainOptions>(tools::parse_train_options(words));
  const tools::TrainJob job = tools::make_job(options, tools::find_start(options, aside), aside);
  std::vector<Ending> endings;
  for (const Cluster& cluster : clusters) {
    std::ostringstream out;
    tools::Console console{.in = in, .out = out, .err = err};
    const tools::ExitCode code = tools::TrainRun(job, cluster, nullptr, console).run();
    CAPTURE(out.str(), err.str());
    REQUIRE(code == tools::ExitCode::Good);
    endings.push_back(ending_of(out.str()));
  }
  return endings;
}

std::vector<std::string> tiny_llama() {
  return {"--dim", "16", "--heads", "2", "--ffn", "24", "--seq", "8", "--microbatch-size", "1"};
}

}  // namespace stagecraft::tests
