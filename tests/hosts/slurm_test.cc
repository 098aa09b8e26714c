/// Tests steps of a real Slurm: their processes find each other, train the bits of one process, and
/// end together; errors name the failed process.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "stagecraft/tests/hosts/test_slurm.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

constexpr const char* kJobFile = STAGECRAFT_SOURCE_DIR "/examples/slurm/train.sbatch";
constexpr const char* kRequeueFile = STAGECRAFT_SOURCE_DIR "/examples/slurm/requeue.sbatch";

void skip_without_slurm() {
  if (const auto why = TestSlurm::obstacle()) {
    SKIP(*why);
  }
}

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// Options of train for a model that takes no time.
const Words kTiny{"--dim", "16", "--ffn", "32", "--seq", "16"};

/// Returns a step that trains, with options of srun and of train.
Words step(const Words& srun, const Words& train) {
  return Words{"srun"} + srun + Words{STAGECRAFT_COMMAND, "launch", "--", "train"} + train;
}

/// Puts `stagecraft` into PATH, as after an installation.
Words installed(const Words& words) {
  const std::string bin = fs::path(STAGECRAFT_COMMAND).parent_path().string();
  return Words{"env", "PATH=" + bin + ":/usr/bin:/bin:/usr/sbin:/sbin"} + words;
}

/// Returns whether all processes of steps end within `limit`, on every node.
bool all_end(const TestSlurm& slurm, std::chrono::seconds limit) {
  return eventually(
      [&] {
        for (int node = 0; node < slurm.hosts().size(); ++node) {
          if (!slurm.processes(node, "--steps").empty()) {
            return false;
          }
        }
        return true;
      },
      limit);
}

/// Returns how many folders exist in which processes of steps meet or have met.
std::size_t meeting_places(const TestSlurm& slurm) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(slurm.folder())) {
    const bool is_one = entry.path().filename().string().starts_with("stagecraft-");
    count += is_one && entry.is_directory() ? 1 : 0;
  }
  return count;
}

/// Returns scontrol's text about the first job.
std::string first_job(const TestSlurm& slurm) {
  return slurm.run({"scontrol", "show", "job", "1"}).out;
}

/// Returns whether all jobs of `scontrol show job` have ended: it prints those of a whole array for
/// the number of its first one.
bool has_ended(const std::string& jobs) {
  constexpr std::string_view kState = "JobState=";
  std::size_t at = jobs.find(kState);
  if (at == std::string::npos) {
    return false;
  }
  for (; at != std::string::npos; at = jobs.find(kState, at + 1)) {
    const std::string_view state = std::string_view(jobs).substr(at + kState.size());
    if (!state.starts_with("COMPLETED") && !state.starts_with("FAILED")) {
      return false;
    }
  }
  return true;
}

/// Returns the output of the job's processes, from the file that the job file names; empty if there
/// is none yet.
std::string output_of(const TestSlurm& slurm) {
  const std::string file = slurm.folder() + "/stagecraft-1.out";
  return fs::exists(file) ? read_text_file(file) : "";
}

/// Returns the one process of the step's program, the driver; 0 if there is none.
int driver_of(const TestSlurm& slurm) {
  const std::vector<int> found = slurm.processes(0, std::string("stagecraft\0train", 16));
  return found.size() == 1 ? found.front() : 0;
}

/// Checks that no step has left a process on any node, or a folder.
void check_nothing_left(const TestSlurm& slurm) {
  CHECK(all_end(slurm, kCommandLimit));
  CHECK(meeting_places(slurm) == 0);
}

TEST_CASE("a step of Slurm trains with the bits of one process", "[hosts][slurm]") {
  skip_without_slurm();
  const TestSlurm slurm(3);
  const Words train{"--layers", "3", "--steps", "3", "--verify"};
  SECTION("on three nodes") {
    const CommandResult run = slurm.run(step({"--nodes=3", "--ntasks=3"}, train));
    INFO(run.out << run.err);
    CHECK(run.exit_code == 0);
    CHECK_THAT(run.out, ContainsSubstring("equal"));
  }
  SECTION("on one node, which has fewer processors than processes") {
    const CommandResult run =
        slurm.run(step({"--nodes=1", "--ntasks=3", "--overcommit", "--cpus-per-task=16"}, train));
    INFO(run.out << run.err);
    CHECK(run.exit_code == 0);
    CHECK_THAT(run.out, ContainsSubstring("equal"));
  }
  check_nothing_left(slurm);
}

TEST_CASE("the job file of docs/slurm.md trains", "[hosts][slurm][docs]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  const CommandResult run = slurm.run(
      installed(Words{"sbatch", kJobFile, "--steps", "3", "--verify", "--save", "a.ckpt"} + kTiny));
  INFO(run.out << run.err);
  REQUIRE(run.exit_code == 0);
  REQUIRE(eventually([&] { return has_ended(first_job(slurm)); }, kCommandLimit));
  const std::string output = output_of(slurm);
  INFO(output);
  CHECK_THAT(first_job(slurm), ContainsSubstring("ExitCode=0:0"));
  CHECK_THAT(output, ContainsSubstring("equal"));
  CHECK_THAT(output, ContainsSubstring("0: "));  // --label
  CHECK(fs::exists(slurm.folder() + "/a.ckpt"));
  check_nothing_left(slurm);
}

TEST_CASE("a job that is queued again continues from its last checkpoint", "[hosts][slurm]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  const CommandResult run = slurm.run(installed({"sbatch",
                                                 "--ntasks-per-node=1",
                                                 "--cpus-per-task=1",
                                                 kJobFile,
                                                 "--layers",
                                                 "2",
                                                 "--steps",
                                                 "100000",
                                                 "--resume",
                                                 "runs",
                                                 "--save-every",
                                                 "1"}));
  REQUIRE(run.exit_code == 0);
  const fs::path runs = slurm.folder() + "/runs";
  const auto has_checkpoint = [&] {
    return fs::exists(runs) &&
           std::ranges::any_of(fs::directory_iterator(runs),
                               [](const auto& file) { return file.path().extension() == ".ckpt"; });
  };
  REQUIRE(eventually(has_checkpoint, kCommandLimit));
  CHECK_THAT(output_of(slurm), ContainsSubstring("starts from the beginning"));
  REQUIRE(slurm.run({"scontrol", "requeue", "1"}).exit_code == 0);
  // Once the job has ended on all nodes, Slurm makes it wait for two minutes. Nodes refuse it as
  // already killed if it starts in the second of its end.
  REQUIRE(eventually([&] {
    const std::string job = first_job(slurm);
    return job.find("JobState=PENDING") != std::string::npos &&
           job.find("Reason=BeginTime") != std::string::npos;
  }));
  const std::string before = output_of(slurm);
  const auto since = [&] { return output_of(slurm).substr(before.size()); };  // --open-mode=append
  REQUIRE(slurm.run({"scontrol", "update", "JobId=1", "StartTime=now+2"}).exit_code == 0);
  REQUIRE(eventually([&] { return since().find(" loss ") != std::string::npos; }, kCommandLimit));
  CHECK_THAT(first_job(slurm), ContainsSubstring("Restarts=1"));
  CHECK(output_of(slurm).starts_with(before));
  CHECK_THAT(since(), !ContainsSubstring("starts from the beginning"));
  REQUIRE(slurm.run({"scancel", "--signal=TERM", "1"}).exit_code == 0);
  check_nothing_left(slurm);
}

TEST_CASE("docs/slurm.md shows the job files as they are", "[hosts][docs]") {
  for (const char* file : {kJobFile, kRequeueFile}) {
    CHECK_THAT(read_text_file(STAGECRAFT_SOURCE_DIR "/docs/slurm.md"),
               ContainsSubstring("```sh\n" + read_text_file(file) + "```\n"));
  }
}

TEST_CASE("a job that is told to end before it is done queues itself again",
          "[hosts][slurm][docs]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  REQUIRE(slurm
              .run(installed({"sbatch",
                              "--ntasks-per-node=1",
                              "--cpus-per-task=1",
                              kRequeueFile,
                              "--layers",
                              "2",
                              "--steps",
                              "100000"}))
              .exit_code == 0);
  REQUIRE(eventually([&] { return output_of(slurm).find(" loss ") != std::string::npos; },
                     kCommandLimit));
  REQUIRE(slurm.run({"scancel", "--signal=TERM", "1"}).exit_code == 0);
  REQUIRE(eventually([&] { return first_job(slurm).find("JobState=PENDING") != std::string::npos; },
                     kCommandLimit));
  CHECK_THAT(first_job(slurm), ContainsSubstring("Restarts=1"));
  const fs::path runs = slurm.folder() + "/runs/1";
  CHECK(std::ranges::any_of(fs::directory_iterator(runs),
                            [](const auto& file) { return file.path().extension() == ".ckpt"; }));
  REQUIRE(slurm.run({"scancel", "1"}).exit_code == 0);
  check_nothing_left(slurm);
}

TEST_CASE("two steps of a job run beside each other", "[hosts][slurm]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  const std::string one = "srun --exact --nodes=2 --ntasks=2 " STAGECRAFT_COMMAND
                          " launch -- train --layers 2 --steps 3 --verify";
  const CommandResult run =
      slurm.run({"salloc",
                 "--nodes=2",
                 "--ntasks-per-node=2",
                 "sh",
                 "-c",
                 one + " >first & first=$!; " + one + " >second && wait $first"});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  for (const char* output : {"/first", "/second"}) {
    CHECK_THAT(read_text_file(slurm.folder() + output), ContainsSubstring("equal"));
  }
  check_nothing_left(slurm);
}

TEST_CASE("jobs of an array run beside each other, and meet each in a folder of its own",
          "[hosts][slurm]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  REQUIRE(slurm
              .run(installed(Words{"sbatch",
                                   "--array=1-2",
                                   "--ntasks-per-node=1",
                                   "--cpus-per-task=1",
                                   kJobFile,
                                   "--layers",
                                   "2",
                                   "--steps",
                                   "3",
                                   "--verify"} +
                             kTiny))
              .exit_code == 0);
  const auto output = [&](int job) {
    const std::string file = slurm.folder() + "/stagecraft-" + std::to_string(job) + ".out";
    return fs::exists(file) ? read_text_file(file) : "";
  };
  for (const int job : {1, 2}) {
    const auto state = [&] {
      return slurm.run({"scontrol", "show", "job", std::to_string(job)}).out;
    };
    REQUIRE(eventually([&] { return has_ended(state()); }, kCommandLimit));
    INFO(output(job));
    CHECK_THAT(state(), ContainsSubstring("ArrayJobId=1") && ContainsSubstring("ExitCode=0:0"));
    CHECK_THAT(output(job), ContainsSubstring("equal"));
  }
  check_nothing_left(slurm);
}

TEST_CASE("nodes whose names differ from their hosts' train, and are told by their hosts' names",
          "[hosts][slurm]") {
  skip_without_slurm();
  const TestSlurm slurm(2, {.node_prefix = "rack-"});
  const CommandResult run =
      slurm.run(step({"--nodes=2", "--ntasks=2"}, {"--layers", "2", "--steps", "3", "--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("equal"));
  CHECK_THAT(run.err, ContainsSubstring("on host-1, tensors arrive at"));
  const CommandResult doctor =
      slurm.run({"srun", "--nodes=2", "--ntasks=2", "--label", STAGECRAFT_COMMAND, "doctor"});
  CHECK_THAT(doctor.out, ContainsSubstring("node rack-1 (the host calls itself host-1), task 1"));
  check_nothing_left(slurm);
}

TEST_CASE("nodes whose names no host resolves need an interface, and the error says so",
          "[hosts][slurm][refusals]") {
  skip_without_slurm();
  const TestSlurm slurm(2, {.node_prefix = "rack-", .nodes_resolve = false});
  const Words train{"--", "train", "--layers", "2", "--steps", "3", "--verify"};
  const Words launch{"srun", "--nodes=2", "--ntasks=2", STAGECRAFT_COMMAND, "launch"};
  const CommandResult refused = slurm.run(launch + train);
  INFO(refused.err);
  CHECK(refused.exit_code != 0);
  CHECK_THAT(refused.err,
             ContainsSubstring("rack-1 is no name of a host") && ContainsSubstring("--interface"));
  check_nothing_left(slurm);
  const CommandResult run = slurm.run(launch + Words{"--interface", "eth0"} + train);
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("equal"));
  check_nothing_left(slurm);
}

TEST_CASE("a process of a step that is killed is named with its node", "[hosts][slurm][faults]") {
  skip_without_slurm();
  const TestSlurm slurm(3);
  RunningCommand run(slurm.call(step({"--nodes=3", "--ntasks=3", "--chdir=" + slurm.folder()},
                                     {"--layers", "3", "--steps", "100000", "--json"})),
                     slurm.folder());
  REQUIRE(run.wait_for_output("\"step\""));
  for (const int process : slurm.processes(2, "--steps")) {
    kill(process, SIGKILL);
  }
  const CommandResult end = run.wait();
  INFO(end.err);
  CHECK(end.exit_code == 128 + SIGKILL);  // the highest status of all tasks; the driver's is 1
  CHECK_THAT(end.err,
             ContainsSubstring("rank 2") && ContainsSubstring("on host-2") &&
                 ContainsSubstring("start the run again") && !ContainsSubstring("cluster.replace"));
  check_nothing_left(slurm);
}

TEST_CASE("a step of a run with --restarts goes on after the worker of a node was killed",
          "[hosts][slurm][faults]") {
  skip_without_slurm();
  const TestSlurm slurm(3);
  RunningCommand run(slurm.call(step({"--nodes=3", "--ntasks=3", "--chdir=" + slurm.folder()},
                                     Words{"--layers", "3", "--steps", "60", "--json"} + kTiny +
                                         Words{"--restarts", "1", "--verify"})),
                     slurm.folder());
  run.keep_pace();
  REQUIRE(run.wait_for_output("\"event\":\"step\",\"step\":3,"));
  const std::vector<int> workers = slurm.processes(2, std::string("stagecraft\0worker", 17));
  REQUIRE(workers.size() == 1);
  REQUIRE(kill(workers.front(), SIGKILL) == 0);
  const CommandResult end = run.wait();
  INFO(end.out << end.err);
  CHECK(end.exit_code == 0);
  CHECK_THAT(
      end.out,
      ContainsSubstring("\"event\":\"restart\",") && ContainsSubstring("\"bit_equal\":true"));
  CHECK_THAT(end.err, ContainsSubstring("worker-1 has ended with status 137"));
  check_nothing_left(slurm);
}

TEST_CASE("a step ends when its driver is killed", "[hosts][slurm][faults]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  RunningCommand run(slurm.call(step({"--nodes=2", "--ntasks=2", "--kill-on-bad-exit=0"},
                                     {"--layers", "2", "--steps", "100000", "--json"})),
                     slurm.folder());
  REQUIRE(run.wait_for_output("\"step\""));
  const int driver = driver_of(slurm);
  REQUIRE(driver != 0);
  kill(driver, SIGKILL);
  CHECK(run.wait().exit_code == 128 + SIGKILL);
  check_nothing_left(slurm);
}

TEST_CASE("a job that is to end saves first", "[hosts][slurm]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  RunningCommand run(
      slurm.call(step({"--nodes=2", "--ntasks=2"},
                      {"--layers", "2", "--steps", "100000", "--save", "a.ckpt", "--json"})),
      slurm.folder());
  REQUIRE(run.wait_for_output("\"step\""));
  REQUIRE(slurm.run({"scancel", "--signal=TERM", "1"}).exit_code == 0);
  const CommandResult end = run.wait();
  INFO(end.err);
  CHECK(end.exit_code == 128 + SIGTERM);
  CHECK_THAT(end.out, ContainsSubstring("\"interrupted\""));
  CHECK(fs::exists(slurm.folder() + "/a.ckpt"));
  check_nothing_left(slurm);
}

TEST_CASE("a step that is cancelled while a worker is awaited leaves no credentials",
          "[hosts][slurm]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  RunningCommand run(
      slurm.call({"srun",
                  "--nodes=2",
                  "--ntasks=2",
                  "--chdir=" + slurm.folder(),
                  "sh",
                  "-c",
                  "if [ $SLURM_PROCID = 0 ]; then exec \"$@\"; else exec sleep 100000; fi",
                  "sh",
                  STAGECRAFT_COMMAND,
                  "launch",
                  "--join-seconds",
                  "600",
                  "--",
                  "train",
                  "--steps",
                  "100000"}),
      slurm.folder());
  REQUIRE(run.wait_for_error("missing rank 1"));
  REQUIRE(meeting_places(slurm) == 1);
  REQUIRE(slurm.run({"scancel", "1"}).exit_code == 0);
  CHECK_FALSE(run.wait().timed_out);
  check_nothing_left(slurm);
}

TEST_CASE("processes of a step that miss each other are told where to look",
          "[hosts][slurm][refusals]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  const auto step_without = [&](int process) {
    return slurm.run(
        {"srun",
         "--nodes=2",
         "--ntasks=2",
         "bash",
         "-c",
         fmt::format("[ $SLURM_PROCID = {} ] || exec {} launch --join-seconds 2 -- train",
                     process,
                     STAGECRAFT_COMMAND)});
  };
  const CommandResult alone = step_without(1);
  INFO(alone.err);
  CHECK(alone.exit_code != 0);
  CHECK_THAT(alone.err,
             ContainsSubstring("not all workers have joined within 2000 ms") &&
                 ContainsSubstring("other processes of this step") &&
                 !ContainsSubstring("stagecraft worker --join"));
  const CommandResult late = step_without(0);
  INFO(late.err);
  CHECK(late.exit_code != 0);
  CHECK_THAT(late.err,
             ContainsSubstring("process 0 of this step has not made") &&
                 ContainsSubstring("or had ended before this process came"));
  check_nothing_left(slurm);
}

TEST_CASE("a job that is suspended for longer than the usual silence continues where it may",
          "[hosts][slurm][faults]") {
  skip_without_slurm();
  constexpr auto kSuspended = std::chrono::seconds(7);  // usually 5 s are allowed
  const TestSlurm slurm(2);
  Words words{"srun", "--nodes=2", "--ntasks=2", STAGECRAFT_COMMAND, "launch"};
  RunningCommand run(slurm.call(words + Words{"--silence-seconds",
                                              "120",
                                              "--",
                                              "train",
                                              "--layers",
                                              "2",
                                              "--steps",
                                              "100000",
                                              "--save",
                                              "a.ckpt",
                                              "--json"}),
                     slurm.folder());
  REQUIRE(run.wait_for_output("\"step\""));
  REQUIRE(slurm.run({"scontrol", "suspend", "1"}).exit_code == 0);
  std::this_thread::sleep_for(kSuspended);
  REQUIRE(slurm.run({"scontrol", "resume", "1"}).exit_code == 0);
  REQUIRE(run.wait_for_error("this process did not run for a time"));
  REQUIRE(slurm.run({"scancel", "--signal=TERM", "1"}).exit_code == 0);
  const CommandResult end = run.wait();
  INFO(end.err);
  CHECK(end.exit_code == 128 + SIGTERM);
  CHECK_THAT(end.out, ContainsSubstring("\"interrupted\""));
  CHECK(fs::exists(slurm.folder() + "/a.ckpt"));
  check_nothing_left(slurm);
}

TEST_CASE("the doctor says of each task of a step where it is and what it has",
          "[hosts][slurm][doctor]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  const CommandResult run = slurm.run({"srun",
                                       "--nodes=2",
                                       "--ntasks=2",
                                       "--cpus-per-task=2",
                                       "--mem=500",
                                       "--label",
                                       STAGECRAFT_COMMAND,
                                       "doctor"});
  INFO(run.out << run.err);
  for (const char* text : {"node host-0, task 0 of 2",
                           "node host-1, task 1 of 2",
                           "step 1.0: 2 processors, limit of memory not told (only to jobs of "
                           "salloc and sbatch with --mem)",
                           "2 of 2 processes of this step meet there"}) {
    CHECK_THAT(run.out, ContainsSubstring(text));
  }
  check_nothing_left(slurm);
}

TEST_CASE("the doctor knows the memory of a job where Slurm allocates it",
          "[hosts][slurm][doctor]") {
  skip_without_slurm();
  const TestSlurm slurm(2, {.allocates_memory = true});
  const auto doctor = [&](const Words& memory) {
    const CommandResult run =
        slurm.run(Words{"salloc", "--nodes=2", "--ntasks=2", "--cpus-per-task=2"} + memory +
                  Words{"srun", "--cpus-per-task=2", "--label", STAGECRAFT_COMMAND, "doctor"});
    INFO(run.err);
    return run.out;
  };
  for (const auto& [memory, text] : std::vector<std::pair<Words, std::string>>{
           {{"--mem=500"}, "500.0 MiB of memory on this node"},
           {{"--mem-per-cpu=150"}, "300.0 MiB of memory on this node"},
           {{}, "limit of memory not told (only to jobs of salloc and sbatch with --mem)"}}) {
    CAPTURE(memory);
    const std::string out = doctor(memory);
    for (const char* task : {"0", "1"}) {
      CHECK_THAT(out,
                 ContainsSubstring("node host-" + std::string(task) + ", task " + task +
                                   " of 2 of step ") &&
                     ContainsSubstring("2 processors, " + text));
    }
  }
  check_nothing_left(slurm);
}

TEST_CASE("a step that cannot train says why, and ends", "[hosts][slurm][bad-input]") {
  skip_without_slurm();
  const TestSlurm slurm(2);
  const std::vector<std::pair<Words, std::string>> cases{
      {step({"--nodes=2", "--ntasks=2"}, {"--ranks", "3", "--layers", "3"}),
       "2 worker processes are needed, and 1 come"},
      {step({"--nodes=2", "--ntasks=3"}, {"--ranks", "2"}),
       "the schedule has 2 ranks, but 3 processes were started"},
      {step({"--nodes=2", "--ntasks=2"}, {"--no-such-option"}), "--no-such-option"},
      {{"srun", "--ntasks=2", STAGECRAFT_COMMAND, "launch", "--", "no-such-program"},
       "no-such-program cannot be run"},
      {{"srun",
        "--ntasks=2",
        STAGECRAFT_COMMAND,
        "launch",
        "--meeting-place",
        "/nowhere",
        "--",
        "train"},
       "cannot meet in '/nowhere'"},
      {{"srun", "--ntasks=2", STAGECRAFT_COMMAND, "launch", "--log-dir", "l", "--", "train"},
       "srun --output"},
      {{"salloc", "--ntasks=2", STAGECRAFT_COMMAND, "launch", "--", "train"},
       "expected --hosts FILE, or to be run by srun"},
      {{"salloc",
        "--ntasks=2",
        "srun",
        "--interactive",
        STAGECRAFT_COMMAND,
        "launch",
        "--",
        "train"},
       "expected --hosts FILE, or to be run by srun"},
      {{"srun", "--nodes=2", "--ntasks=2", STAGECRAFT_COMMAND, "train", "--steps", "1"},
       "srun has started 2 processes of this command"}};
  for (const auto& [words, message] : cases) {
    CAPTURE(words);
    const CommandResult run = slurm.run(words);
    INFO(run.err);
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, ContainsSubstring(message));
    check_nothing_left(slurm);
  }
}

}  // namespace
}  // namespace stagecraft::tests
