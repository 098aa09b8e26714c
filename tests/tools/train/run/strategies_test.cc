/// Tests `stagecraft train --strategy` and `--dp`: the combinations of docs/strategies.md, on
/// threads and processes, and what is refused.
#include <filesystem>
#include <fstream>
#include <sstream>

#include <ATen/ops/equal.h>
#include <fmt/format.h>

#include "stagecraft/compiler/tensor_files/module_file.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/strategy/piper_strategy.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/tools/train/run/runs_on_clusters.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

// This include comes last: LibTorch has a CHECK of its own.
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

std::string page() {
  return read_text_file(STAGECRAFT_SOURCE_DIR "/docs/strategies.md");
}

/// Returns the commands of the page's table: the words in the last column.
std::vector<Words> combinations() {
  std::vector<Words> found;
  std::istringstream lines(page());
  for (std::string line; std::getline(lines, line);) {
    if (const std::size_t begin = line.find("| `--"); begin != std::string::npos) {
      std::istringstream words(line.substr(begin + 3, line.rfind('`') - begin - 3));
      Words& command = found.emplace_back();
      for (std::string word; words >> word;) {
        command.push_back(word);
      }
    }
  }
  return found;
}

/// Returns the code block of the page whose first line is "# NAME".
std::string file_of_page(const std::string& name) {
  const std::string text = page();
  const std::size_t begin = text.find(fmt::format("```text\n# {}\n", name));
  REQUIRE(begin != std::string::npos);
  const std::size_t body = text.find('\n', begin) + 1;
  return text.substr(body, text.find("```", body) - body);
}

/// Writes the file beside the test and returns its path.
std::string write(const std::string& name, const std::string& text) {
  const std::string path = (fs::temp_directory_path() / fmt::format("{}-{}", getpid(), name));
  std::ofstream(path) << text;
  return path;
}

bool divides_experts(const Words& words) {
  return std::find(words.begin(), words.end(), "moe") != words.end();
}

Words tiny(Words words) {
  const bool clip = std::find(words.begin(), words.end(), "clip") != words.end();
  Words sizes = clip ? Words{"--microbatch-size", "2"} : tiny_llama();
  if (!clip) {
    sizes.insert(sizes.end(), {"--layers", "8"});
  }
  const bool strategy = std::find(words.begin(), words.end(), "--strategy") != words.end();
  if (!strategy) {
    sizes.insert(sizes.end(), {"--microbatches", "4"});
  }
  words.insert(words.end(), sizes.begin(), sizes.end());
  words.insert(words.end(), {"--steps", "2", "--verify", "--json"});
  return words;
}

}  // namespace

TEST_CASE("every combination of the page trains as its ranks add up, on threads and processes",
          "[tools][train][strategies][processes]") {
  const std::vector<Cluster> clusters{Cluster::local(8), Cluster::spawn(8)};
  const std::vector<Words> all = combinations();
  REQUIRE(all.size() >= 7);
  for (Words words : all) {
    for (std::string& word : words) {
      if (word.ends_with(".strategy")) {
        word = write(word, file_of_page(word));
      }
    }
    CAPTURE(words);
    const std::vector<Ending> endings = endings_on(clusters, tiny(words));
    for (const auto& [verified, sha256] : endings) {
      CAPTURE(verified.dump());
      if (divides_experts(words)) {
        CHECK_THAT(verified.at("reordered").get<std::string>(), ContainsSubstring("experts"));
      } else {
        CHECK(verified.at("bit_equal_as_ranks") == true);
      }
      CHECK(verified.at("within_bound") == true);
      CHECK(sha256 == endings.front().sha256);
    }
  }
}

TEST_CASE("the strategy of a run trains like the run", "[tools][train][strategies]") {
  const Words how =
      GENERATE(Words{"--ranks", "4", "--dp", "2"},
               Words{"--schedule", "zb-v", "--ranks", "4", "--dp", "2"},
               Words{"--schedule", "dualpipev", "--ranks", "2", "--microbatches", "4"},
               Words{"--schedule", "gpipe", "--ranks", "3", "--layers", "6"});
  const std::string file = write("out.strategy", "");
  Words first = how;
  first.insert(first.end(), {"--strategy-out", file});
  const TrainOutput short_form = train_json(first);
  Words again{"--strategy", file};
  for (std::size_t i = 0; i + 1 < how.size(); i += 2) {
    if (how[i] == "--layers" || how[i] == "--microbatches") {
      again.insert(again.end(), {how[i], how[i + 1]});
    }
  }
  CAPTURE(read_text_file(file));
  CHECK(train_json(again).sha256() == short_form.sha256());
  again[1] = write("out.json", to_piper(parse_strategy(read_text_file(file))));
  CHECK(train_json(again).sha256() == short_form.sha256());
}

/// Returns the memory that the dry run of a command predicts for its steps.
double predicted_bytes(Words words) {
  words.insert(words.end(), {"--dry-run", "--json"});
  const CommandResult result = run_train(words);
  CHECK(result.exit_code == 0);
  const nlohmann::json memory =
      nlohmann::json::parse(result.out.substr(0, result.out.find('\n'))).at("memory");
  double run = 0.0;
  for (const nlohmann::json& line : memory.at("lines")) {
    run += line.at("time") == "in the run" ? line.at("bytes").get<double>() : 0.0;
  }
  return run;
}

TEST_CASE("--zero 1 trains the bits of --dp in less memory, and its strategy does the same",
          "[tools][train][strategies][shards]") {
  const Words copies{"--ranks", "4", "--dp", "2"};
  Words shared = copies;
  shared.insert(shared.end(), {"--zero", "1"});
  const std::string file = write("shared.strategy", "");
  Words written = shared;
  written.insert(written.end(), {"--strategy-out", file});
  const std::string sha256 = train_json(copies).sha256();
  CHECK(train_json(written).sha256() == sha256);
  CHECK_THAT(read_text_file(file), ContainsSubstring("shard_optimizer"));
  CHECK(train_json({"--strategy", file}).sha256() == sha256);
  CHECK(predicted_bytes(shared) < predicted_bytes(copies));
  CHECK(predicted_bytes({"--strategy", file}) == predicted_bytes(shared));
  CHECK_THAT(
      run_train({"--ranks", "2", "--zero", "1"}).err,
      ContainsSubstring("--zero expects copies of the pipeline") && ContainsSubstring("add --dp"));
}

TEST_CASE(
    "--zero 2 and 3 share gradients and weights, in buckets, and their strategies do the same",
    "[tools][train][strategies][shards]") {
  const auto at_level = [](const std::string& level) {
    Words words{"--ranks", "4", "--dp", "2", "--zero", level};
    if (level != "1") {
      words.insert(words.end(), {"--bucket-size", "20K"});
    }
    return words;
  };
  const auto [level, below, word] = GENERATE(table<std::string, std::string, std::string>(
      {{"2", "1", "shard_grads"}, {"3", "2", "shard_params"}}));
  const Words states = at_level(below);
  const Words shared = at_level(level);
  const std::string file = write("rounds.strategy", "");
  Words written = shared;
  written.insert(written.end(), {"--strategy-out", file});
  const std::string sha256 = train_json(written).sha256();
  CHECK_THAT(read_text_file(file), ContainsSubstring("bucket_size=20K " + word));
  CHECK(train_json({"--strategy", file}).sha256() == sha256);
  // Parts end behind whole blocks, which is much of a model of some KiB.
  const auto large = [](Words words) {
    words.insert(words.end(), {"--ffn", "4096"});
    return words;
  };
  CHECK(predicted_bytes(large(shared)) < predicted_bytes(large(states)));
  CHECK(predicted_bytes({"--strategy", file}) == predicted_bytes(shared));
  CHECK_THAT(run_train({"--ranks", "4", "--bucket-size", "20K"}).err,
             ContainsSubstring("--bucket-size expects copies of the pipeline"));
  CHECK_THAT(run_train({"--ranks", "4", "--dp", "2", "--bucket-size", "many"}).err,
             ContainsSubstring("--bucket-size expects a number of bytes from 1 to 1024T, e.g. 512M "
                               "or 4G (powers of 1024), found 'many'"));
}

TEST_CASE("--ep divides experts in less memory, and its strategy does the same",
          "[tools][train][strategies][experts]") {
  const auto with = [](Words words) {
    words.insert(words.begin(), {"--model", "moe"});
    return words;
  };
  const auto [copies, divided, line] = GENERATE_COPY(
      table<Words, Words, std::string>({{with({"--ranks", "4", "--dp", "2"}),
                                         with({"--ranks", "4", "--ep", "2"}),
                                         "shard {PP:1,EP:*} on [1,3]\n"},
                                        {with({"--ranks", "4", "--dp", "4"}),
                                         with({"--ranks", "4", "--dp", "4", "--ep", "2"}),
                                         "shard {PP:0,EP:*} on [0,1,2,3] n=2\n"}}));
  const std::string file = write("experts.strategy", "");
  Words written = divided;
  written.insert(written.end(), {"--strategy-out", file});
  const std::string sha256 = train_json(written).sha256();
  CHECK_THAT(read_text_file(file), ContainsSubstring(line));
  CHECK(train_json(with({"--strategy", file})).sha256() == sha256);
  CHECK(predicted_bytes(divided) < predicted_bytes(copies));
  CHECK(predicted_bytes(with({"--strategy", file})) == predicted_bytes(divided));
  Words dry = divided;
  dry.emplace_back("--dry-run");
  CHECK_THAT(run_train(dry).out,
             ContainsSubstring("divided: weights of chunk 1 of stage 0 among ranks 0, "));
  CHECK_THAT(run_train({"--ranks", "4", "--ep", "2"}).err,
             ContainsSubstring("the model has no region EP"));
  CHECK_THAT(run_train(with({"--ranks", "4", "--ep", "3", "--dp", "4"})).err,
             ContainsSubstring("--ep expects a divisor of --dp 4, found 3"));
  CHECK_THAT(run_train(with({"--ranks", "4", "--ep", "3"})).err,
             ContainsSubstring("--ep expects a divisor of 4"));
}

TEST_CASE("both files of weights have the same whole tensors, whatever ranks share or divide",
          "[tools][train][strategies][shards][experts]") {
  Words how = GENERATE(
      Words{"--ranks", "4", "--dp", "2", "--zero", "3", "--bucket-size", "20K"},
      Words{"--model", "moe", "--ranks", "4", "--ep", "2"},
      Words{"--model", "moe", "--ranks", "4", "--ep", "2", "--zero", "3", "--bucket-size", "20K"});
  CAPTURE(how);
  const TemporaryFolder folder;
  const std::string weights = folder.path() + "/w.safetensors", module = folder.path() + "/m.pt";
  how.insert(how.end(), {"--verify", "--save-weights", weights, "--save-module", module});
  const TrainOutput run = train_json(how);
  CHECK(run.verify.at("within_bound") == true);
  CHECK((divides_experts(how) || run.verify.at("bit_equal_as_ranks") == true));

  const ModuleState of_module = read_module(module);
  std::map<std::string, at::Tensor> by_name;
  for (const std::vector<NamedTensor>* const all : {&of_module.parameters, &of_module.buffers}) {
    for (const NamedTensor& one : *all) {
      by_name.emplace(one.name, one.tensor);
    }
  }
  const std::vector<NamedTensor> found = read_weights(weights);
  CHECK(found.size() == by_name.size());
  for (const NamedTensor& one : found) {
    CAPTURE(one.name);
    CHECK(at::equal(by_name.at(one.name), one.tensor));
  }
}

TEST_CASE("the end of a run has the peaks of its steps beside those of its bill",
          "[tools][train][strategies][memory]") {
  Words words{"--ranks", "4", "--dp", "2", "--zero", "3", "--bucket-size", "20K"};
  const TrainOutput run = train_json(words);
  words.insert(words.end(), {"--dry-run", "--json"});
  const std::string out = run_train(words).out;
  const auto bill = nlohmann::json::parse(out.substr(0, out.find('\n'))).at("ranks");
  const auto ranks = run.ranks.at("ranks");
  REQUIRE(ranks.size() == bill.size());
  for (std::size_t r = 0; r < bill.size(); ++r) {
    const auto billed = ranks[r].at("billed_peak_bytes").get<std::int64_t>();
    CHECK(billed == bill[r].at("borrowed_bytes").get<std::int64_t>() +
                        bill[r].at("peak_activation_bytes").get<std::int64_t>());
    CHECK(ranks[r].at("peak_bytes").get<std::int64_t>() > 0);
  }
}

TEST_CASE("the file of a strategy names the options that complete it",
          "[tools][train][strategies]") {
  const Words how{"--ranks",
                  "2",
                  "--cut",
                  "layers.1",
                  "--microbatch-size",
                  "3",
                  "--recompute",
                  "layers.0,layers.2",
                  "--precision",
                  "bf16"};
  const std::string file = write("complete.strategy", "");
  Words first = how;
  first.insert(first.end(), {"--strategy-out", file});
  const TrainOutput written = train_json(first);
  const std::string text = read_text_file(file);
  CAPTURE(text);
  CHECK_THAT(text,
             ContainsSubstring("#   --microbatch-size 3 --cut op:") &&
                 ContainsSubstring(" --recompute layers.0,layers.2 --precision bf16\n"));
  Words again{"--strategy", file};
  std::istringstream options(text.substr(text.find("#   ") + 4));
  for (std::string word; options.peek() != '\n' && options >> word;) {
    again.push_back(word);
  }
  CHECK(train_json(again).sha256() == written.sha256());
  // Without them, the run is another one.
  CHECK(train_json({"--strategy", file}).sha256() != written.sha256());
  CHECK_THAT(run_train({"--schedule",
                        "dag-kfkb",
                        "--ranks",
                        "2",
                        "--set",
                        "sizes=1,2",
                        "--strategy-out",
                        write("sizes.strategy", "")})
                 .err,
             ContainsSubstring("found sizes, which a strategy cannot say"));
}

TEST_CASE("the operators of stages that are no chain stand in the comment of a strategy",
          "[tools][train][strategies]") {
  const std::string file = write("branches.strategy", "");
  // Each of the first two stages has a half of each tower.
  const std::string cut = write("branches.cut", "{0-29 60-90}\n{30-59 91-119}\n{120-133}\n");
  const Words tower{"--model",
                    "clip",
                    "--ranks",
                    "3",
                    "--schedule",
                    "dag-1f1b",
                    "--steps",
                    "2",
                    "--microbatches",
                    "4",
                    "--microbatch-size",
                    "2"};
  const auto trained = [&](Words words, const Words& more) {
    words.insert(words.begin(), {STAGECRAFT_COMMAND, "train"});
    words.insert(words.end(), more.begin(), more.end());
    return train_output(words).sha256();
  };
  const std::string written = trained(tower, {"--cut", "@" + cut, "--strategy-out", file});
  const std::string text = read_text_file(file);
  CAPTURE(text);
  CHECK_THAT(text,
             ContainsSubstring(" --cut @FILE\n# with a FILE of these lines:\n#   @operators 134 "));
  std::string lines;
  std::istringstream all(text.substr(text.find("lines:\n") + 7));
  for (std::string line; std::getline(all, line) && line.starts_with("#   ");) {
    lines += line.substr(4) + "\n";
  }
  CHECK(trained({"--model", "clip", "--steps", "2", "--microbatch-size", "2"},
                {"--strategy", file, "--cut", "@" + write("lines.cut", lines)}) == written);
}

TEST_CASE("sums in parts change no bit", "[tools][train][strategies]") {
  const std::string file =
      write("parts.strategy",
            "split {} dim=MB n=4\nplace {PP:0} on [0,2]\nplace {PP:1} on [1,3]\n"
            "replicate {PP:0} on [0,2] bucket_size=8K reduce_stream=dp\n"
            "replicate {PP:1} on [1,3] bucket_size=8K reduce_stream=dp\n");
  CHECK_THAT(run_train({"--strategy", file, "--dry-run"}).out,
             ContainsSubstring("gradients of chunk 1 of stage 0 on ranks 0, 2"));
  const TrainOutput parts = train_json({"--strategy", file, "--eval-every", "1", "--verify"});
  CHECK(parts.verify.at("bit_equal_as_ranks") == true);
  const TrainOutput whole = train_json({"--ranks", "4", "--dp", "2"});
  CHECK(parts.sha256() == whole.sha256());
}

TEST_CASE("a schedule file names the ranks of its rows", "[tools][train][strategies]") {
  const std::string file = write("placed.txt",
                                 "@place 0=0,2 1=1,3\n"
                                 "0F0 0F1 .   0B0 .   0B1\n"
                                 ".   1F0 1B0 1F1 1B1 .\n");
  const TrainOutput placed = train_json({"--schedule", file, "--microbatches", "2", "--verify"});
  CHECK(placed.verify.at("bit_equal_as_ranks") == true);
  CHECK(placed.ranks.at("ranks").size() == 4);
  const TrainOutput copies = train_json({"--dp", "2", "--ranks", "4", "--microbatches", "2"});
  CHECK(copies.sha256() == placed.sha256());
  const CommandResult twice = run_train({"--schedule", file, "--microbatches", "2", "--dp", "2"});
  CHECK(twice.exit_code != 0);
  CHECK_THAT(twice.err, ContainsSubstring("@place already"));
}

TEST_CASE("a file of another kind is told as what it is, with the option that takes it",
          "[tools][train][strategies][bad-input]") {
  const auto told = [](const Words& words) {
    const CommandResult result = run_train(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  CHECK_THAT(told({"--schedule", write("a.strategy", "split {} n=4\nplace {PP:0} on [0]\n")}),
             ContainsSubstring("a.strategy' looks like a strategy, expected a schedule") &&
                 ContainsSubstring("train --strategy"));
  CHECK_THAT(
      told({"--strategy", write("a.sched", "@form list\n0F0 0B0\n")}),
      ContainsSubstring("a.sched' looks like a schedule (format text), expected a strategy") &&
          ContainsSubstring("train --schedule"));
  CHECK_THAT(told({"--strategy", write("a.json", "{\"rows\": [[\"0F0\", \"0B0\"]]}")}),
             ContainsSubstring("looks like a schedule (format json)"));
  CHECK_THAT(told({"--strategy",
                   write("a.bin",
                         std::string("\x7f"
                                     "ELF\0\0",
                                     6))}),
             ContainsSubstring("a.bin' is a binary file, expected a strategy"));
  CHECK_THAT(told({"--strategy", write("typo.strategy", "splt n=4\nplace {PP:0} on [0]\n")}),
             ContainsSubstring("typo.strategy': line 1, column 1: 'splt' is no directive; did you "
                               "mean split?"));
}

TEST_CASE("options that contradict a strategy are refused, and all its faults told at once",
          "[tools][train][strategies][bad-input]") {
  const std::string two =
      "split {} dim=MB n=4\nplace {PP:0} on [0,2]\nplace {PP:1} on [1,3]\n"
      "replicate {PP:0} on [0,2]\nreplicate {PP:1} on [1,3]\n";
  struct Case {
    std::string file;
    Words more;
    std::vector<std::string> told;
  };
  const std::vector<Case> cases{
      {two, {"--ranks", "3"}, {"--ranks expects 4", "found 3"}},
      {two, {"--microbatches", "8"}, {"--microbatches expects 4", "found 8"}},
      {two, {"--dp", "2"}, {"--strategy excludes --dp"}},
      {two, {"--plan", "auto"}, {"--strategy", "leave one of the two out"}},
      {"split {} dim=MB n=4\nplace {PP:0} on [0]\nplace {PP:2} on [1]\n"
       "order [{PP:0,MB:9,PASS:F}] [{PP:0,MB:0,PASS:F}]\n",
       {},
       {"PP:1", "MB:9"}},
      {"split {} dim=MB n=4\nplace {PP:0} on [0]\nplace {PP:1} on [2]\n", {}, {"without a gap"}},
      {"place {PP:0} over [0]\n", {}, {"line 1"}},
      {two + "replicate {PP:1} on [0,1]\n", {}, {"replicate {PP:1} on [0,1]"}},
      {"split {} dim=MB n=4\nplace {PP:*} on [0,1]\nreplicate {PP:*} on [0,1] shard_params\n"
       "shard {PP:0} on [0,1]\n",
       {"--stages", "2"},
       {"shard {PP:0} on [0,1]: 0F0 has a neighbor in another stage"}},
  };
  for (const Case& one : cases) {
    Words words{"--strategy", write("wrong.strategy", one.file)};
    words.insert(words.end(), one.more.begin(), one.more.end());
    if (std::find(words.begin(), words.end(), "--microbatches") == words.end()) {
      words.insert(words.end(), {"--microbatches", "4"});
    }
    const CommandResult result = run_train(words);
    CAPTURE(one.file, one.more, result.err);
    CHECK(result.exit_code != 0);
    for (const std::string& part : one.told) {
      CHECK_THAT(result.err, ContainsSubstring(part));
    }
  }
  CHECK_THAT(run_train({"--schedule",
                        "dualpipe",
                        "--ranks",
                        "4",
                        "--layers",
                        "8",
                        "--microbatches",
                        "8",
                        "--strategy-out",
                        write("none.strategy", "")})
                 .err,
             ContainsSubstring("found one with @replicas"));
  CHECK_THAT(run_train({"--dp", "3", "--ranks", "4"}).err,
             ContainsSubstring("--dp expects a divisor of 4"));
}

TEST_CASE("copies of a pipeline continue each other's checkpoints, and evaluate",
          "[tools][train][strategies]") {
  const std::string file = write("copies.checkpoint", "");
  const Words copies{"--ranks", "4", "--dp", "2", "--microbatches", "2"};
  Words first = copies;
  first.insert(first.end(), {"--steps", "2", "--save", file, "--eval-every", "1"});
  const TrainOutput saved = train_json(first);
  CHECK(std::count_if(saved.others.begin(), saved.others.end(), [](const auto& line) {
          return line.at("event") == "eval";
        }) == 2);
  Words whole = copies;
  whole.insert(whole.end(), {"--steps", "4"});
  Words rest = copies;
  rest.insert(rest.end(), {"--steps", "4", "--load", file});
  CHECK(train_json(rest).sha256() == train_json(whole).sha256());
  // The same file continues without copies, with the bits of one process.
  const TrainOutput alone = train_json(
      {"--ranks", "2", "--microbatches", "4", "--steps", "4", "--load", file, "--verify"});
  CHECK(alone.verify.at("bit_equal") == true);
}

}  // namespace stagecraft::tests
