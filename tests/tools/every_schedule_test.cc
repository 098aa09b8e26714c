/// `stagecraft train --schedule NAME --verify` for every builder there is, and what is wrong usage
/// of it.
#include <map>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "stagecraft/scheduler/accumulation.h"
#include "stagecraft/scheduler/registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/train_run.h"
#include "stagecraft/tools/train/verify.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

/// The Llama of the other tests, with as many layers as the schedule has stages.
nlohmann::json verify(Words words) {
  words.emplace_back("--verify");
  if (std::find(words.begin(), words.end(), "--layers") == words.end()) {
    words.insert(words.end(), {"--layers", "8"});
  }
  return train_json(words).verify;
}

}  // namespace

TEST_CASE("every builder trains as one process does, bit by bit unless replicas add up shares",
          "[tools][train][builders]") {
  const std::set<std::string_view> two_replicas{"dualpipe", "chimera"};
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const nlohmann::json result =
        verify({"--schedule", std::string(builder.name), "--ranks", "2", "--steps", "2"});
    CAPTURE(result.dump());
    CHECK(result.at("bit_equal") == !two_replicas.contains(builder.name));
    CHECK(result.contains("within_bound") == two_replicas.contains(builder.name));
    CHECK(result.value("within_bound", true) == true);
  }
}

TEST_CASE("the documentation's table says of every builder what --verify finds",
          "[tools][docs][builders]") {
  const std::string text = read_text_file(STAGECRAFT_SOURCE_DIR "/docs/schedules.md");
  const std::size_t begin = text.find("\n## What trains bit-equal\n");
  REQUIRE(begin != std::string::npos);
  std::istringstream section(text.substr(begin, text.find("\n## ", begin + 1) - begin));
  std::map<std::string, std::string> promised;  // by builder without parameters
  for (std::string line; std::getline(section, line);) {
    if (!line.starts_with("| `") || line.find("--set") != std::string::npos) {
      continue;
    }
    const std::size_t bar = line.find('|', 1);
    const std::string promise = line.substr(bar + 2, line.find('|', bar + 1) - bar - 3);
    for (const BuilderInfo& builder : builders()) {
      if (line.substr(0, bar).find(fmt::format("`{}`", builder.name)) != std::string::npos) {
        promised[std::string(builder.name)] = promise;
      }
    }
  }
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    const bool reordered =
        reordered_accumulation(build_schedule(builder.name, request)).has_value();
    CHECK(promised[std::string(builder.name)] ==
          (reordered ? fmt::format("within {:g}", tools::kReorderedBound) : "the same bits"));
  }
}

TEST_CASE("parameters of a builder are set as in schedule make", "[tools][train][builders]") {
  const Words words = GENERATE(Words{"--schedule", "kfkb", "--set", "k=2"},
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

TEST_CASE("backwards taken newest first stay within the bound, and the reason is said",
          "[tools][train][builders]") {
  const nlohmann::json result = verify({"--schedule", "gpipe", "--set", "reverse_bwd=1"});
  CHECK(result.at("bit_equal") == false);
  CHECK(result.at("within_bound") == true);
  CHECK(result.at("reordered").get<std::string>() ==
        "stage 0 adds microbatch 1 after microbatch 3");
}

TEST_CASE("a run of two replicas goes on from its checkpoint, also in one replica",
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
