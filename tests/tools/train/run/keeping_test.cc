/// Tests the files that `stagecraft train` keeps of a run, and continuing from them.

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "stagecraft/actors/trainer/checkpoint_folder.h"
#include "stagecraft/base/split.h"
#include "stagecraft/compiler/tensor_files/module_file.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;

using Words = std::vector<std::string>;

Words two_stages(Words words, const Words& more = {}) {
  words.insert(words.end(), {"--stages", "2"});
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

std::vector<std::vector<std::string>> table_of(const std::string& path) {
  std::vector<std::vector<std::string>> table;
  std::istringstream lines(read_text_file(path));
  for (std::string line; std::getline(lines, line);) {
    const auto cells = split(line, ',');
    table.emplace_back(cells.begin(), cells.end());
  }
  return table;
}

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace

TEST_CASE("a run that is killed continues from its folder as if it had never stopped",
          "[tools][keeping]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/run";
  const Words keeping = two_stages(
      {"--resume", place, "--save-dir", place, "--save-every", "1", "--keep", "2", "--verify"});
  Words endless = keeping;
  endless.insert(endless.end(), {"--steps", "1000000000", "--json"});
  RunningCommand running(small_train(endless));
  REQUIRE(running.wait_for_output("\"event\":\"saved\",\"step\":3,"));
  running.send_signal(SIGKILL);
  const CommandResult killed = running.wait();
  CAPTURE(killed.err);
  CHECK(killed.exit_code == 128 + SIGKILL);
  CHECK_THAT(killed.err, ContainsSubstring("the run starts from the beginning"));

  const CheckpointSearch search = find_checkpoint(place);
  REQUIRE(search.newest);
  const std::int64_t newest = search.newest->step;
  CHECK(newest >= 3);
  const std::string steps = std::to_string(newest + 2);
  Words to_end = keeping;
  to_end.insert(to_end.end(), {"--steps", steps});
  const TrainOutput resumed = train_json(to_end);
  CHECK(resumed.steps.front().at("step") == newest + 1);
  CHECK(resumed.verify.at("bit_equal") == true);
  const TrainOutput unbroken = train_json(two_stages({"--steps", steps}));
  CHECK(resumed.sha256() == unbroken.sha256());
  CHECK(names_in(place).size() == 2);

  REQUIRE(resumed.others.size() > 0);
  CHECK(resumed.others.front().at("event") == "resumed");
  CHECK(resumed.others.front().at("step") == newest);
  CHECK(resumed.others.front().at("file") == search.newest->path);

  // The newest checkpoint is broken: the run takes the one before it, and says so.
  const std::string last = find_checkpoint(place).newest->path;
  fs::resize_file(last, fs::file_size(last) - 1);
  const CommandResult again =
      run_train(two_stages({"--resume", place, "--steps", std::to_string(newest + 3), "--json"}));
  CAPTURE(again.out, again.err);
  CHECK(again.exit_code == 0);
  CHECK_THAT(again.err, ContainsSubstring("--resume skips a checkpoint: " + last));
  CHECK_THAT(again.out, ContainsSubstring("\"step\":" + std::to_string(newest + 2) + ","));
}

TEST_CASE("a run that loses a worker while it saves says why at once, and how to continue",
          "[tools][keeping][processes]") {
  const TemporaryFolder folder;
  // The more there is to save, the longer the worker is asked for it.
  RunningCommand running(small_train({"--stages",
                                      "2",
                                      "--dim",
                                      "256",
                                      "--workers",
                                      "processes",
                                      "--save-dir",
                                      folder.path(),
                                      "--save-every",
                                      "1",
                                      "--steps",
                                      "1000000000",
                                      "--json"}));
  const int saved = GENERATE(2, 4);
  REQUIRE(running.wait_for_output("\"event\":\"saved\",\"step\":" + std::to_string(saved) + ","));
  const std::vector<pid_t> workers = running.children();
  REQUIRE(workers.size() == 2);
  REQUIRE(kill(workers.front(), SIGKILL) == 0);
  const CommandResult end = running.wait(std::chrono::seconds(60));  // no deadline of a trainer
  CAPTURE(end.err);
  CHECK_FALSE(end.timed_out);
  CHECK(end.exit_code == 1);
  CHECK_THAT(end.err,
             ContainsSubstring(std::to_string(workers.front())) &&
                 ContainsSubstring("was killed by signal 9") &&
                 ContainsSubstring("start the run again with --resume " + folder.path() + ";") &&
                 !ContainsSubstring("cluster.replace") && !ContainsSubstring("trainer.load"));
  const CheckpointSearch search = find_checkpoint(folder.path());
  REQUIRE(search.newest);
  CHECK(search.newest->step >= saved);
}

TEST_CASE("a complete run that is queued again ends well", "[tools][keeping]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/run";
  const auto until = [&](const std::string& step, const Words& more = {}) {
    return run_train(two_stages({"--resume", place, "--save-dir", place, "--steps", step}, more));
  };
  REQUIRE(until("2").exit_code == 0);
  const CommandResult again = until("2");
  INFO(again.out << again.err);
  CHECK(again.exit_code == 0);
  CHECK(again.out == place + "/step-000000002.ckpt is at step 2 of 2: nothing left to do\n");
  CHECK_THAT(until("2", {"--json"}).out, ContainsSubstring("\"event\":\"complete\",\"step\":2,"));

  CHECK(until("1").out ==
        place + "/step-000000002.ckpt is at step 2, past --steps 1: nothing left to do\n");

  // The checkpoint of another run says nothing about this one.
  for (const auto& [other, why] : {std::pair{Words{"--seed", "7"}, "of seed 0"},
                                   std::pair{Words{"--optimizer", "sgd"}, "set --optimizer as"}}) {
    const CommandResult refused = until("2", other);
    CAPTURE(refused.out);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, ContainsSubstring(why));
  }
  CHECK(until("2", {"--seed", "7", "--seed-from", "option"}).exit_code == 0);
  CHECK(until("2", {"--seed", "7", "--seed-from", "checkpoint"}).exit_code == 0);

  // The run continues from where it says, for more steps.
  CHECK_THAT(until("3").out,
             ContainsSubstring("continues from step-000000002.ckpt, after step 2 of 3\n"));

  // Files of the end would be of another step than --steps.
  const std::string end = folder.path() + "/end.ckpt";
  const CommandResult past = until("2", {"--save", end});
  CHECK(past.exit_code == 2);
  CHECK_THAT(past.err,
             ContainsSubstring("is at step 3, past --steps 2, and --save '" + end +
                               "' does not exist: give --steps 3 to write it"));
  CHECK_FALSE(fs::exists(end));
  CHECK(until("3", {"--save", end}).exit_code == 0);
  CHECK_THAT(until("2", {"--save", end}).out, ContainsSubstring("nothing left to do"));
}

TEST_CASE(
    "a run that was killed before it wrote the files of its end writes them when queued again",
    "[tools][keeping]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/run",
                    weights = folder.path() + "/weights.safetensors",
                    whole = folder.path() + "/whole.safetensors",
                    module = folder.path() + "/module.pt", trace = folder.path() + "/trace.json",
                    last = place + "/step-000000003.ckpt";
  const Words killed = two_stages({"--resume", place, "--save-every", "1", "--trace", trace});
  REQUIRE(run_train(killed).exit_code == 0);
  REQUIRE(run_train(two_stages({"--save-weights", whole})).exit_code == 0);
  const auto saved_at = fs::last_write_time(last);
  const std::string traced = read_text_file(trace);
  Words again = killed;
  again.insert(again.end(),
               {"--save-weights", weights, "--save-module", module, "--verify", "--costs-out"});
  again.push_back(folder.path() + "/costs.json");

  const bool is_older = GENERATE(false, true);
  if (is_older) {  // as of a run with fewer steps
    (void)folder.write("weights.safetensors", "older");
    (void)folder.write("module.pt", "");
    fs::last_write_time(weights, saved_at - std::chrono::seconds(1));
  }
  const TrainOutput ended = train_json(again);
  CHECK(ended.steps.empty());
  CHECK(ended.others.front().at("event") == "resumed");
  CHECK(ended.verify.at("bit_equal") == true);
  CHECK(ended.done.at("steps") == 3);
  CHECK(read_text_file(weights) == read_text_file(whole));
  CHECK_FALSE(read_module(module).parameters.empty());
  CHECK(fs::last_write_time(last) == saved_at);
  CHECK(read_text_file(trace) == traced);
  CHECK(names_in(place) ==
        std::set<std::string>{"step-000000001.ckpt", "step-000000002.ckpt", "step-000000003.ckpt"});

  CHECK_THAT(run_train(again).out, ContainsSubstring("nothing left to do"));
}

TEST_CASE("a run from the beginning takes no folder that has checkpoints",
          "[tools][keeping][bad-input]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/run", none = folder.path() + "/none";
  const std::string first = place + "/step-000000002.ckpt";
  const auto with = [&](const Words& more) {
    return run_train(two_stages({"--save-dir", place}, more));
  };
  REQUIRE(with({"--steps", "2"}).exit_code == 0);
  const std::string told = "'" + place +
                           "' has checkpoints of an earlier run, the newest at step "
                           "2: --resume " +
                           place + " continues it; or name another folder";
  fs::create_directory(none);  // without checkpoints: this --resume starts from the beginning too
  for (const Words& more : {Words{}, Words{"--seed", "7"}, Words{"--resume", none}}) {
    const CommandResult refused = with(more);
    CAPTURE(refused.out, refused.err);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err, ContainsSubstring(told));
  }
  CHECK(names_in(place) == std::set<std::string>{"step-000000002.ckpt"});
  CHECK(with({"--load", first}).exit_code == 0);  // it continues the run
  CHECK(names_in(place).contains("step-000000003.ckpt"));
  CHECK(with({"--resume", place, "--steps", "4"}).exit_code == 0);

  // No checkpoint is whole: there is nothing to mix with.
  const std::string broken = folder.path() + "/broken";
  fs::create_directory(broken);
  (void)folder.write("broken/step-000000009.ckpt", "none");
  CHECK(run_train(two_stages({"--save-dir", broken, "--steps", "1"})).exit_code == 0);
}

TEST_CASE(
    "a save that fails while the run goes on is told, and its status is that of the last save",
    "[tools][keeping]") {
  const bool last = GENERATE(false, true);
  const TemporaryFolder folder;
  fs::create_directory(folder.path() + (last ? "/step-000000003.ckpt" : "/step-000000001.ckpt"));
  const CommandResult result =
      run_train(two_stages({"--save-dir", folder.path(), "--save-every", "1", "--json"}));
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == (last ? 2 : 0));
  const auto event = [](const char* name, int step) {
    return ContainsSubstring(fmt::format("\"event\":\"{}\",\"step\":{},", name, step));
  };
  CHECK_THAT(result.out,
             event("not_saved", last ? 3 : 1) && event("saved", last ? 1 : 3) &&
                 ContainsSubstring("\"event\":\"done\",\"steps\":3,"));
  CHECK(result.err.empty() != last);
}

TEST_CASE("a signal saves to --save-dir too", "[tools][keeping]") {
  const TemporaryFolder folder;
  RunningCommand running(
      small_train(two_stages({"--save-dir", folder.path(), "--steps", "1000000000", "--json"})));
  REQUIRE(running.wait_for_output("\"step\":2,"));
  running.send_signal(SIGTERM);
  const CommandResult result = running.wait();
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK_THAT(result.err, ContainsSubstring("then saving"));
  const CheckpointSearch search = find_checkpoint(folder.path());
  REQUIRE(search.newest);
  CHECK_THAT(result.out,
             ContainsSubstring("\"interrupted\",\"step\":" + std::to_string(search.newest->step)));
}

TEST_CASE("a checkpoint of another seed is taken where it is said whose continues",
          "[tools][keeping]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/a.ckpt";
  (void)train_json(two_stages({"--seed", "3", "--steps", "2", "--save", file}));
  const Words load = two_stages({"--load", file, "--steps", "4"});
  const CommandResult refused = run_train(load);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err,
             ContainsSubstring("of seed 3") && ContainsSubstring("--seed-from checkpoint"));
  const auto sha256 = [&](const Words& more) {
    Words words = load;
    words.insert(words.end(), more.begin(), more.end());
    return train_json(words).sha256();
  };
  const std::string unbroken = train_json(two_stages({"--seed", "3", "--steps", "4"})).sha256();
  CHECK(sha256({"--seed-from", "checkpoint"}) == unbroken);
  CHECK(sha256({"--seed-from", "option"}) != unbroken);
}

TEST_CASE("a checkpoint of another model or optimizer is refused with the options to give",
          "[tools][keeping][bad-input]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/a.ckpt";
  const auto text = [&](const char* name, const std::string& line) {
    std::string all;
    while (all.size() < 4000) {
      all += line;
    }
    return folder.write(name, all);
  };
  const std::string few = text("few.txt", "to be or not to be\n");
  const std::string many = text("many.txt", "the quick brown fox jumps over the lazy dog\n");
  (void)train_json(two_stages({"--text", few, "--steps", "1", "--save", file}));
  const auto message = [&](const Words& more) {
    Words words = two_stages({"--load", file, "--steps", "2"});
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult refused = run_train(words);
    CHECK(refused.exit_code == 2);
    CHECK_THAT(refused.err, !ContainsSubstring("trainer") && !ContainsSubstring("weight:"));
    return refused.err;
  };
  CHECK_THAT(message({"--text", many}),
             ContainsSubstring("the checkpoint is of another model: its parameter ") &&
                 ContainsSubstring("(the distinct bytes of --text are the vocabulary)"));
  CHECK_THAT(message({"--text", few, "--optimizer", "sgd"}),
             ContainsSubstring("set --optimizer as it was when the checkpoint was saved"));
}

TEST_CASE("train --metrics writes a row a step, and continues where a run continues",
          "[tools][keeping]") {
  const TemporaryFolder folder;
  const std::string metrics = folder.path() + "/metrics", file = folder.path() + "/a.ckpt";
  const Words both = two_stages({"--metrics", metrics, "--eval-every", "2", "--lr", "0.01"});
  Words first = both, second = both;
  first.insert(first.end(), {"--steps", "3", "--save", file});
  second.insert(second.end(), {"--steps", "4", "--load", file});
  (void)train_json(first);
  const TrainOutput resumed = train_json(second);
  const auto table = table_of(metrics + "/metrics.csv");
  REQUIRE(table.size() == 5);
  CHECK(table[0] == Words{"step",
                          "loss",
                          "seconds",
                          "tokens_per_second",
                          "gradient_norm",
                          "learning_rate",
                          "bubble",
                          "peak_bytes",
                          "eval_loss"});
  for (std::size_t row = 1; row < table.size(); ++row) {
    REQUIRE(table[row].size() == table[0].size());
    CHECK(table[row][0] == std::to_string(row));
    CHECK(table[row][5] == "0.01");
    CHECK(table[row][8].empty() == (row % 2 == 1));
    CHECK(std::stod(table[row][7]) > 0.0);
  }
  CHECK(std::stod(table[4][1]) == resumed.steps.at(0).at("loss").get<double>());
  CHECK(names_in(metrics).size() == 3);  // the table, and one file of events per run
}

TEST_CASE("train --save-module writes all tensors by the model's names", "[tools][keeping]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/module.pt";
  const TrainOutput output = train_json(two_stages({"--save-module", file}));
  REQUIRE(output.others.size() == 1);
  CHECK(output.others[0] == nlohmann::json{{"event", "saved_module"}, {"step", 3}, {"file", file}});
  CHECK_FALSE(read_module(file).parameters.empty());
}

TEST_CASE("places for what is kept are tried before the run", "[tools][keeping]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  const auto refused = [&](const Words& words) {
    const CommandResult result = run_train(two_stages(words, {"--dry-run"}));
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK_THAT(refused({"--save-dir", file}),
             ContainsSubstring("--save-dir: expected a folder") && ContainsSubstring(file));
  CHECK_THAT(refused({"--metrics", file + "/a"}),
             ContainsSubstring("--metrics: expected a folder"));
  CHECK_THAT(refused({"--save-module", folder.path()}), ContainsSubstring("--save-module"));
  CHECK_THAT(refused({"--save", file, "--save-module", file}), ContainsSubstring("name one file"));
  CHECK_THAT(refused({"--resume", folder.path() + "/none"}),
             ContainsSubstring("--resume expects a folder of checkpoints"));
  CHECK(names_in(folder.path()) == std::set<std::string>{"file"});
}

}  // namespace stagecraft::tests
