/// Tests `stagecraft train --run-dir` and `stagecraft doctor --run` at the command's edge: on runs
/// that finish, fail, are struck or are killed, the folder alone tells what happened.

#include <sys/types.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

/// A folder for a run, and what the doctor says of it.
struct Folder {
  TemporaryFolder temporary;
  std::string path = temporary.path() + "/run";

  [[nodiscard]] Words train(const Words& more) const {
    Words words{"--stages", "2", "--ranks", "2", "--run-dir", path};
    words.insert(words.end(), more.begin(), more.end());
    return small_train(words);
  }
  [[nodiscard]] nlohmann::json doctor(int exit_code) const {
    const CommandResult run = run_command({STAGECRAFT_COMMAND, "doctor", "--run", path, "--json"});
    CAPTURE(run.out, run.err);
    CHECK(run.exit_code == exit_code);
    nlohmann::json report = nlohmann::json::parse(run.out);
    CHECK(report.at("stagecraft") == "doctor");
    CHECK(report.at("good") == (exit_code == 0));
    CHECK(report.at("run") == path);
    return report;
  }
  [[nodiscard]] std::string doctor_text() const {
    return run_command({STAGECRAFT_COMMAND, "doctor", "--run", path}).out;
  }
};

const Words kProcesses{"--workers", "processes"};
const Words kLong{"--workers", "processes", "--steps", "60", "--save-every", "2", "--json"};

Words longer(const Words& words, const Words& more) {
  Words all = words;
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

void wait_for_step(RunningCommand& run, int step) {
  REQUIRE(run.wait_for_output("\"event\":\"step\",\"step\":" + std::to_string(step) + ","));
}

TEST_CASE("a folder holds all of a run, and the same command continues it", "[tools][run]") {
  const Folder folder;
  const Words command = folder.train(longer(kProcesses, {"--save-every", "1"}));
  const CommandResult first = run_command(command);
  INFO(first.out << first.err);
  REQUIRE(first.exit_code == 0);
  for (const char* part : {"/record.jsonl",
                           "/strategy.txt",
                           "/metrics/metrics.csv",
                           "/checkpoints/step-000000003.ckpt",
                           "/logs/rank-0.log",
                           "/logs/rank-1.log"}) {
    CHECK(fs::exists(folder.path + part));
  }
  const nlohmann::json report = folder.doctor(0);
  CHECK(report.at("state") == "finished");
  CHECK(report.at("starts") == 1);
  CHECK(report.at("step") == 3);
  CHECK(report.at("steps") == 3);
  CHECK(report.at("repeated_steps") == 0);
  CHECK_THAT(report.at("build").get<std::string>(), ContainsSubstring("LibTorch"));

  const CommandResult again = run_command(command);
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.out, ContainsSubstring("nothing left to do"));
  CHECK(folder.doctor(0).at("starts") == 2);
  CHECK(folder.doctor(0).at("state") == "finished");

  Words further = command;
  *(std::ranges::find(further, "--steps") + 1) = "5";
  const CommandResult third = run_command(further);
  INFO(third.out << third.err);
  CHECK(third.exit_code == 0);
  CHECK_THAT(third.out, ContainsSubstring("continues from step-000000003.ckpt"));
  CHECK(folder.doctor(0).at("step") == 5);
}

TEST_CASE("options that are given keep their places", "[tools][run]") {
  const Folder folder;
  const std::string metrics = folder.temporary.path() + "/other",
                    checkpoints = folder.temporary.path() + "/kept";
  const CommandResult run =
      run_command(folder.train({"--metrics", metrics, "--save-dir", checkpoints}));
  INFO(run.err);
  CHECK(run.exit_code == 0);
  CHECK(fs::exists(metrics + "/metrics.csv"));
  CHECK(fs::exists(checkpoints + "/step-000000003.ckpt"));
  CHECK_FALSE(fs::exists(folder.path + "/metrics"));
  CHECK_FALSE(fs::exists(folder.path + "/checkpoints"));
  CHECK_FALSE(fs::exists(folder.path + "/logs"));  // of threads there are none
  const nlohmann::json report = folder.doctor(0);
  CHECK(report.at("step") == 3);
  CHECK(report.at("checkpoint").at("step") == 3);
}

TEST_CASE("a folder takes no second run", "[tools][run][refusals]") {
  const Folder folder;
  REQUIRE(run_command(folder.train({})).exit_code == 0);
  const CommandResult other = run_command(folder.train({"--dim", "16"}));
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err,
             ContainsSubstring("holds another run: it has --dim 32, this run has --dim 16"));
  const CommandResult strategy = run_command(folder.train({"--schedule", "gpipe"}));
  CHECK(strategy.exit_code == 2);
  CHECK_THAT(strategy.err,
             ContainsSubstring("it has --schedule 1f1b, this run has --schedule gpipe"));
  CHECK(folder.doctor(0).at("starts") == 1);
  const CommandResult load = run_command(folder.train({"--load", "x.ckpt"}));
  CHECK(load.exit_code == 2);
  CHECK_THAT(load.err, ContainsSubstring("--run-dir expects no --load"));
}

TEST_CASE("a run whose worker is killed names its log, and the doctor its end", "[tools][run]") {
  const Folder folder;
  RunningCommand run(folder.train(kLong));
  run.keep_pace();
  wait_for_step(run, 5);
  REQUIRE(kill(run.children().at(1), SIGKILL) == 0);
  const CommandResult end = run.wait();
  INFO(end.err);
  CHECK(end.exit_code == 1);
  const std::string log = folder.path + "/logs/rank-";
  CHECK_THAT(end.err, ContainsSubstring("its log is " + log));
  const nlohmann::json report = folder.doctor(1);
  INFO(report.dump());
  CHECK(report.at("state") == "failed");
  const std::int64_t rank = report.at("error").at("rank");
  CHECK(report.at("log") == log + std::to_string(rank) + ".log");
  CHECK(report.at("error").at("step").get<std::int64_t>() >= 6);
  CHECK(report.at("error").at("code") == "worker.lost");
  CHECK(report.at("last_lines").dump().find("was killed by signal 9") != std::string::npos);
  CHECK(report.at("last_lines").dump().find("driver: rank " + std::to_string(rank) + " step ") !=
        std::string::npos);
  CHECK(report.at("checkpoint").at("step").get<std::int64_t>() >= 2);
  CHECK(report.at("repeated_steps").get<std::int64_t>() ==
        report.at("step").get<std::int64_t>() -
            report.at("checkpoint").at("step").get<std::int64_t>());
  const std::string go_on = report.at("go_on");
  CHECK_THAT(go_on, ContainsSubstring("stagecraft train") && ContainsSubstring(folder.path));
}

TEST_CASE("a healed run names the log of the lost worker; its successor has its own",
          "[tools][run][restarts]") {
  const Folder folder;
  RunningCommand run(folder.train(longer(kLong, {"--restarts", "2"})));
  run.keep_pace();
  wait_for_step(run, 3);
  REQUIRE(kill(run.children().at(0), SIGKILL) == 0);
  const CommandResult end = run.wait(std::chrono::seconds(300));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  const nlohmann::json report = folder.doctor(0);
  INFO(report.dump());
  CHECK(report.at("state") == "finished");
  REQUIRE(report.at("restarts").size() == 1);
  CHECK_THAT(report.at("restarts").at(0).at("failures").at(0).get<std::string>(),
             ContainsSubstring("was killed by signal 9"));
  const std::string log = report.at("log");
  CHECK_THAT(log, ContainsSubstring("/logs/rank-"));
  CHECK_THAT(read_text_file(log), ContainsSubstring("was killed by signal 9"));
  const std::string next = log.substr(0, log.size() - 4) + "-incarnation-1.log";
  CHECK_THAT(read_text_file(next),
             ContainsSubstring(" is in the place of process ") && ContainsSubstring(log));
  CHECK_THAT(folder.doctor_text(), ContainsSubstring("healed     at step "));
}

TEST_CASE("a driver that is killed leaves a folder that says so, and goes on", "[tools][run]") {
  const Folder folder;
  const Words command = folder.train(kLong);
  {
    RunningCommand run(command);
    run.keep_pace();
    wait_for_step(run, 5);
    const nlohmann::json running = folder.doctor(0);
    CHECK(running.at("state") == "running");
    const CommandResult second = run_command(command);
    CHECK(second.exit_code == 2);
    CHECK_THAT(second.err, ContainsSubstring("its run is going on"));
    run.send_signal(SIGKILL);
    CHECK(run.wait().exit_code == 128 + SIGKILL);
  }
  const nlohmann::json report = folder.doctor(1);
  CHECK(report.at("state") == "killed");
  CHECK_THAT(report.at("how").get<std::string>(), ContainsSubstring("killed without a word"));
  CHECK(report.at("starts") == 1);
  CHECK(report.at("step").get<std::int64_t>() >= 4);
  const std::string programs = fs::path(STAGECRAFT_COMMAND).parent_path().string();
  const CommandResult next = run_command(
      {"bash", "-c", "PATH=" + programs + ":$PATH; " + report.at("go_on").get<std::string>()});
  INFO(next.err);
  CHECK(next.exit_code == 0);
  CHECK_THAT(next.out, ContainsSubstring("\"event\":\"resumed\""));
  CHECK(folder.doctor(0).at("starts") == 2);
}

TEST_CASE("no secret of the environment gets into the folder", "[tools][run]") {
  const Folder folder;
  const EnvironmentVariable secret("AWS_SECRET_ACCESS_KEY", "hunter2"),
      token("MY_TOKEN", "hunter2"), link("STAGECRAFT_WATCH_LINK", "hunter2"),
      threads("OMP_NUM_THREADS", "1"), job("SLURM_JOB_ID", "4711");
  REQUIRE(run_command(folder.train({"--steps", "1"})).exit_code == 0);
  const std::string record = read_text_file(folder.path + "/record.jsonl");
  CHECK_THAT(record,
             !ContainsSubstring("hunter2") && ContainsSubstring(R"("OMP_NUM_THREADS":"1")") &&
                 ContainsSubstring(R"("job":{"SLURM_JOB_ID":"4711"})"));
  const std::string go_on = folder.doctor(0).at("go_on");
  CHECK_THAT(go_on, ContainsSubstring("OMP_NUM_THREADS=1 ") && !ContainsSubstring("SLURM_JOB_ID"));
}

TEST_CASE("a folder that was moved tells the same, and goes on where it is now", "[tools][run]") {
  const Folder folder;
  RunningCommand run(folder.train(longer(kLong, {"--restarts", "1"})));
  run.keep_pace();
  wait_for_step(run, 5);
  REQUIRE(kill(run.children().at(1), SIGKILL) == 0);
  REQUIRE(run.wait_for_output("\"event\":\"restart\""));
  run.send_signal(SIGKILL);
  REQUIRE(run.wait().exit_code == 128 + SIGKILL);
  const nlohmann::json before = folder.doctor(1);
  Folder moved;
  fs::rename(folder.path, moved.path);
  const nlohmann::json after = moved.doctor(1);
  INFO(before.dump() << after.dump());
  const auto now_at = [&](const nlohmann::json& path) {
    return moved.path + path.get<std::string>().substr(folder.path.size());
  };
  CHECK(after.at("log") == now_at(before.at("log")));
  CHECK(after.at("last_lines") == before.at("last_lines"));
  CHECK_FALSE(after.at("last_lines").empty());
  CHECK(after.at("checkpoint").at("file") == now_at(before.at("checkpoint").at("file")));
  CHECK(after.at("step") == before.at("step"));
  CHECK(after.at("repeated_steps") == before.at("repeated_steps"));
  CHECK_THAT(after.at("notes").dump(),
             ContainsSubstring("when the run started, this folder was " + folder.path));
  CHECK_THAT(after.at("how").get<std::string>(),
             ContainsSubstring("has said no end") && ContainsSubstring(folder.path));
  const std::string programs = fs::path(STAGECRAFT_COMMAND).parent_path().string();
  const CommandResult next = run_command(
      {"bash", "-c", "PATH=" + programs + ":$PATH; " + after.at("go_on").get<std::string>()});
  INFO(next.err);
  CHECK(next.exit_code == 0);
  CHECK_THAT(next.out, ContainsSubstring("\"event\":\"resumed\""));
  CHECK_FALSE(fs::exists(folder.path));
  CHECK(moved.doctor(0).at("state") == "finished");
}

TEST_CASE("a run that is told to end says that it has saved", "[tools][run]") {
  const Folder folder;
  RunningCommand run(folder.train({"--steps", "200", "--json"}));
  run.keep_pace();
  wait_for_step(run, 2);
  run.send_signal(SIGTERM);
  CHECK(run.wait().exit_code == 128 + SIGTERM);
  const nlohmann::json report = folder.doctor(0);
  CHECK(report.at("state") == "told_to_end");
  CHECK_THAT(report.at("how").get<std::string>(), ContainsSubstring("SIGTERM"));
  CHECK(report.at("checkpoint").at("step") == report.at("step"));
  CHECK(report.at("repeated_steps") == 0);
}

TEST_CASE("a task that fails is named with its rank, its step and its log", "[tools][run]") {
  const Folder folder;
  const CommandResult run = run_command(folder.train(longer(kProcesses, {"--memory-limit", "8K"})));
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err, ContainsSubstring("its log is " + folder.path + "/logs/rank-"));
  const nlohmann::json report = folder.doctor(1);
  INFO(report.dump());
  CHECK(report.at("state") == "failed");
  CHECK(report.at("error").at("code") == "device.out_of_memory");
  CHECK(report.at("error").at("step") == 1);
  CHECK(report.at("error").at("rank").is_number());
  CHECK(report.at("checkpoint").is_null());
  CHECK(report.at("step") == 0);
  CHECK(report.at("steps") == 3);
  CHECK_THAT(read_text_file(report.at("log")), ContainsSubstring(" step 1 failed: "));
  CHECK_THAT(folder.doctor_text(), ContainsSubstring("failed at step 1, rank "));
}

TEST_CASE("a run that fails before it trains says why", "[tools][run][refusals]") {
  const Folder folder;
  const CommandResult run = run_command(folder.train({"--text", folder.path + "/none"}));
  CHECK(run.exit_code == 2);
  const nlohmann::json report = folder.doctor(1);
  CHECK(report.at("state") == "failed");
  CHECK(report.at("steps").is_null());
  CHECK_THAT(report.at("error").at("message").get<std::string>(), ContainsSubstring("none"));
  CHECK_THAT(folder.doctor_text(), ContainsSubstring("it ended before it began to train"));
}

TEST_CASE("a folder that no run can use is refused, and a dry run makes none",
          "[tools][run][refusals]") {
  const Folder folder;
  CHECK(run_command(folder.train({"--dry-run"})).exit_code == 0);
  CHECK_FALSE(fs::exists(folder.path));
  const CommandResult full = run_command({"bash",
                                          "-c",
                                          "ulimit -f 0; exec \"$@\"",
                                          "bash",
                                          STAGECRAFT_COMMAND,
                                          "train",
                                          "--run-dir",
                                          folder.path});
  CHECK(full.exit_code == 2);
  CHECK_THAT(full.err, ContainsSubstring("cannot be written: File too large; name another"));
  fs::remove_all(folder.path);
  std::ofstream(folder.path) << "a file";
  const CommandResult run = run_command(folder.train({}));
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, ContainsSubstring("--run-dir: '" + folder.path + "' cannot be written"));
}

}  // namespace
}  // namespace stagecraft::tests
