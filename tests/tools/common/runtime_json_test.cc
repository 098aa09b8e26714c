/// Checks the common shape of the objects of all commands that need LibTorch (JO-1).
#include <iterator>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/own_cache.h"
#include "stagecraft/tests/tools/common/command_run.h"
#include "stagecraft/tests/tools/common/json_shape.h"
#include "stagecraft/tests/tools/common/runtime_run.h"
#include "stagecraft/tests/tools/train/run/train_run.h"
#include "stagecraft/tools/schedule/schedule.h"
#include "stagecraft/tools/trace/trace.h"

namespace stagecraft::tests {

TEST_CASE("every event of a run, and trace compare, have the common shape (JO-1)",
          "[tools][train][json]") {
  const TemporaryFolder folder;
  const std::string trace = folder.path() + "/trace.json", plan = folder.path() + "/plan.txt";
  const CommandResult run = run_train({"--stages",
                                       "2",
                                       "--ranks",
                                       "2",
                                       "--cut",
                                       "layers.2",
                                       "--eval-every",
                                       "1",
                                       "--verify",
                                       "--trace",
                                       trace,
                                       "--save-module",
                                       folder.path() + "/module",
                                       "--save-dir",
                                       folder.path() + "/kept",
                                       "--json"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  for (const auto& object : check_json_shape("train", run.out)) {
    CHECK(std::next(object.begin(), 2).key() == "event");
  }
  REQUIRE(run_in_test(&tools::schedule,
                      {"make", "1f1b", "--devices", "2", "--microbatches", "4", "-o", plan})
              .exit_code == 0);
  const CommandResult compared = run_in_test(&tools::trace, {"compare", plan, trace, "--json"});
  CAPTURE(compared.err);
  REQUIRE(compared.exit_code == 0);
  CHECK(check_json_shape("trace compare", compared.out).at(0).at("cells").size() == 10);
}

TEST_CASE("the object of a dry run has the common shape (JO-1)", "[tools][train][json]") {
  const CommandResult run = run_train({"--stages", "2", "--dry-run", "--json"});
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(check_json_shape("train", run.out).size() == 1);
}

TEST_CASE("the objects of import, profile and doctor have the common shape (JO-1)",
          "[tools][json]") {
  const OwnCache cache;
  const CommandResult import =
      run_here({STAGECRAFT_COMMAND,
                "import",
                STAGECRAFT_SOURCE_DIR "/tests/data/models/resnet/model.pt2",
                "--stages",
                "2",
                "--json"});
  CAPTURE(import.err);
  CHECK(check_json_shape("import", import.out).at(0).contains("cut"));

  const CommandResult profile = run_here({STAGECRAFT_COMMAND,
                                          "profile",
                                          "--layers",
                                          "1",
                                          "--dim",
                                          "16",
                                          "--heads",
                                          "2",
                                          "--ffn",
                                          "32",
                                          "--seq",
                                          "8",
                                          "--json"});
  CAPTURE(profile.err);
  CHECK(check_json_shape("profile", profile.out).size() == 1);

  const CommandResult doctor = run_command({STAGECRAFT_COMMAND, "doctor", "--json"});
  CAPTURE(doctor.err);
  CHECK(check_json_shape("doctor", doctor.out).size() == 1);
}

}  // namespace stagecraft::tests
