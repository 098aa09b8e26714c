/// Tests `stagecraft train --schedule NAME --verify` for every builder, in every place of its
/// ranks, and its wrong usage.
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/notes/accumulation.h"
#include "stagecraft/tests/tools/train/run/runs_on_clusters.h"
#include "stagecraft/tests/tools/train/run/train_run.h"
#include "stagecraft/tools/train/verify/verify.h"

// This include comes last: LibTorch has a CHECK of its own.
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

/// Trains the Llama of the other tests, with as many layers as the schedule has stages.
nlohmann::json verify(Words words) {
  words.emplace_back("--verify");
  if (std::find(words.begin(), words.end(), "--layers") == words.end()) {
    words.insert(words.end(), {"--layers", "8"});
  }
  return train_json(words).verify;
}

/// Returns the smallest sizes that every builder's constraints allow on four ranks.
Words tiny_verify(std::string_view builder) {
  Words words = tiny_llama();
  words.insert(words.end(),
               {"--schedule",
                std::string(builder),
                "--ranks",
                "4",
                "--microbatches",
                "8",
                "--steps",
                "2",
                "--verify",
                "--json"});
  return words;
}

}  // namespace

TEST_CASE(
    "every builder trains as one process does on threads, processes and a mix of them, bit by bit "
    "unless replicas add up shares",
    "[tools][train][builders][processes]") {
  const std::set<std::string_view> two_replicas{"dualpipe", "chimera"};
  const std::vector<Cluster> clusters{
      Cluster::local(4),
      Cluster::spawn(4),
      Cluster::spawn(4, {.ranks_per_process = 2, .local_ranks = 1}),  // 1, 2 and 1 ranks together
  };
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const std::vector<Ending> endings = endings_on(clusters, tiny_verify(builder.name));
    for (const auto& [verified, sha256] : endings) {
      CAPTURE(verified.dump());
      CHECK(verified.at("bit_equal") == !two_replicas.contains(builder.name));
      CHECK(verified.contains("within_bound") == two_replicas.contains(builder.name));
      CHECK(verified.value("within_bound", true) == true);
      CHECK(sha256 == endings.front().sha256);
    }
  }
}

namespace {

/// Returns the columns of the page's table by builder, without lines about parameters.
std::map<std::string, std::vector<std::string>> promises() {
  const std::string text = read_text_file(STAGECRAFT_SOURCE_DIR "/docs/builders.md");
  const std::size_t begin = text.find("\n## What trains bit-equal\n");
  REQUIRE(begin != std::string::npos);
  std::istringstream section(text.substr(begin, text.find("\n## ", begin + 1) - begin));
  std::map<std::string, std::vector<std::string>> promised;
  for (std::string line; std::getline(section, line);) {
    if (!line.starts_with("| `") || line.find("--set") != std::string::npos) {
      continue;
    }
    std::vector<std::string> columns;
    for (std::size_t bar = 0; line.find('|', bar + 1) != std::string::npos;) {
      const std::size_t next = line.find('|', bar + 1);
      columns.push_back(line.substr(bar + 2, next - bar - 3));
      bar = next;
    }
    for (const BuilderInfo& builder : builders()) {
      if (columns.front().find(fmt::format("`{}`", builder.name)) != std::string::npos) {
        promised[std::string(builder.name)] = columns;
      }
    }
  }
  return promised;
}

}  // namespace

TEST_CASE("the documentation's table says of every builder what --verify finds",
          "[tools][docs][builders]") {
  const auto promised = promises();
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    const Schedule schedule = build_schedule(builder.name, request);
    const StageGraph graph = schedule.stage_graph();
    const bool reordered = reordered_accumulation(schedule, graph).has_value();
    const auto found = promised.find(std::string(builder.name));
    REQUIRE(found != promised.end());
    REQUIRE(found->second.size() == 4);
    CHECK(found->second[1] ==
          (reordered ? fmt::format("within {:g}", tools::kReorderedBound) : "the same bits"));
    CHECK(found->second[2] == (graph.replicas() > 1              ? "those of the first replica"
                               : late_forwards(schedule).empty() ? "the same bits"
                                                                 : "other bits"));
  }
}

TEST_CASE("a dry run says which tasks do nothing", "[tools][train][dry-run][surplus]") {
  const Words words{"--schedule", "zb-h1", "--ranks", "2", "--dry-run"};
  const CommandResult people = run_train(words);
  CAPTURE(people.out, people.err);
  REQUIRE(people.exit_code == 0);
  CHECK_THAT(
      people.out,
      ContainsSubstring("(0I0)") &&
          ContainsSubstring("4 tasks do nothing: 4 I of stage 0 (inputs need no gradient)") &&
          ContainsSubstring("instructions (4 do nothing) for 2 ranks"));
  Words as_json = words;
  as_json.emplace_back("--json");
  const nlohmann::json programs = nlohmann::json::parse(run_train(as_json).out);
  CHECK(programs.at("surplus") ==
        nlohmann::json::parse(R"([{"stage": 0, "kind": "I", "tasks": 4}])"));
  const CommandResult none = run_train({"--schedule", "1f1b", "--ranks", "2", "--dry-run"});
  CHECK_THAT(none.out, !ContainsSubstring("nothing"));
}

TEST_CASE("stages of different microbatch sizes train as one process does, wherever they are",
          "[tools][train][sizes][processes]") {
  const std::vector<Cluster> clusters{Cluster::local(4), Cluster::spawn(4)};
  const std::string sizes = GENERATE("sizes=1,2,4,2", "sizes=8,1,2,1");
  Words words = tiny_verify("dag-kfkb");
  words.insert(words.end(), {"--set", sizes});
  const std::vector<Ending> endings = endings_on(clusters, words);
  for (const auto& [verified, sha256] : endings) {
    CAPTURE(sizes, verified.dump());
    CHECK(verified.at("bit_equal") == true);
    CHECK(sha256 == endings.front().sha256);
  }
}

TEST_CASE("stages of different microbatch sizes recompute", "[tools][train][sizes]") {
  const Words kept{"--schedule", "dag-kfkb", "--ranks", "2", "--set", "sizes=1,2"};
  const auto with = [&](Words more) {
    more.insert(more.end(), kept.begin(), kept.end());
    more.emplace_back("--verify");
    return train_json(more);
  };
  const std::string weights = with({}).sha256();
  const TrainOutput output = with({"--recompute", "stage"});
  CHECK(output.verify.at("bit_equal") == true);
  CHECK(output.sha256() == weights);
}

TEST_CASE("what cannot be had with sizes of microbatches is refused", "[tools][train][sizes]") {
  const TemporaryFolder folder;
  const CommandResult evaluated = run_train(
      {"--schedule", "dag-kfkb", "--ranks", "2", "--set", "sizes=1,2", "--eval-every", "1"});
  CHECK(evaluated.exit_code == 2);
  CHECK_THAT(evaluated.err, ContainsSubstring("leave --eval-every out"));
  const std::string file = folder.write(
      "one_row", "@sizes 1,2\n@form list\n0F0 0F1 0F2 0F3 1F0 1F1 1B0 1B1 0B0 0B1 0B2 0B3\n");
  const CommandResult one_row = run_train({"--schedule", file});
  CHECK(one_row.exit_code == 1);
  CHECK_THAT(one_row.err, ContainsSubstring("both are on one row"));
}

TEST_CASE("parameters of a builder are set as in schedule make", "[tools][train][builders]") {
  const Words words = GENERATE(Words{"--schedule", "kfkb", "--set", "k=2"},
                               Words{"--schedule", "dag-kfkb", "--set", "k=1,2,1,2"},
                               Words{"--schedule", "interleaved", "--ranks", "2", "--chunks", "3"},
                               Words{"--schedule", "hanayo", "--ranks", "2", "--set", "waves=2"},
                               Words{"--schedule",
                                     "pfeife",
                                     "--ranks",
                                     "2",
                                     "--set",
                                     "loops=2",
                                     "--set",
                                     "block=2",
                                     "--set",
                                     "extra=1,0"});
  CHECK(verify(words).at("bit_equal") == true);
}

TEST_CASE("a file that freezes stages is no schedule for a model that trains all",
          "[tools][train][surplus]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("frozen", "@frozen 0\n0F0 .   0B0\n.   1F0 1B0\n");
  const CommandResult result = run_train({"--schedule", file});
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, ContainsSubstring("remove its @frozen"));
}

TEST_CASE("backwards taken newest first stay within the bound, and the reason is said",
          "[tools][train][builders]") {
  const nlohmann::json result = verify({"--schedule", "gpipe", "--set", "reverse_bwd=1"});
  CHECK(result.at("bit_equal") == false);
  CHECK(result.at("within_bound") == true);
  CHECK(result.at("reordered").get<std::string>() ==
        "stage 0 adds microbatch 1 after microbatch 3");
}

TEST_CASE("a run of two replicas continues from its checkpoint, also in one replica",
          "[tools][train][builders]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/two.ckpt";
  const Words dualpipe{"--schedule", "dualpipe", "--ranks", "2"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string whole = train_json(with(dualpipe, {"--steps", "4"})).sha256();
  (void)train_json(with(dualpipe, {"--steps", "2", "--save", file}));
  CHECK(train_json(with(dualpipe, {"--steps", "4", "--load", file})).sha256() == whole);
  (void)train_json({"--stages", "4", "--steps", "4", "--load", file});
}

TEST_CASE("what does not fit a builder is wrong usage, said with what would fit",
          "[tools][train][builders]") {
  const auto refused = [](const Words& words, const std::string& part) {
    const CommandResult result = run_train(words);
    CAPTURE(result.err);
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring(part));
  };
  refused({"--schedule", "dualpipe", "--ranks", "3"}, "even");
  refused({"--schedule", "dualpipe", "--ranks", "4"}, "8");  // microbatches: M >= 2P
  refused({"--schedule", "1f1b", "--chunks", "2"}, "exactly 1 chunk");
  refused({"--schedule", "1f1b", "--set", "k=2"}, "no parameter 'k'");
  refused({"--schedule", "zb-v", "--ranks", "4", "--layers", "4"}, "--layers expects at least 8");
  refused({"--schedule", "zb-v", "--ranks", "2", "--stages", "3"}, "--stages expects 4");
  refused({"--schedule", "1f1b", "--ranks", "99999"}, "smaller");
}

}  // namespace stagecraft::tests
