/// Tests setups of ranks that divide experts: they come back as they were, and wrong ones are
/// refused.
#include <functional>
#include <span>
#include <string>
#include <utility>

#include "stagecraft/actors/executor/setup/setup_wire.h"
#include "stagecraft/actors/executor/setup/verify_setup.h"
#include "stagecraft/compiler/shapes/other_shape.h"
#include "stagecraft/tests/actors/executor/setup/divided_setups.h"
#include "stagecraft/tests/actors/executor/setup/own_parts.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::own_program;
using testing::own_tables;

TEST_CASE("SW-1: setups that divide experts come back as the same bytes, each with its part",
          "[executor][wire][experts]") {
  const int copies = GENERATE(2, 4);
  const std::vector<RankSetup> setups = testing::divided_setups(copies);
  REQUIRE(std::ssize(setups) == copies);
  for (std::size_t rank = 0; rank < setups.size(); ++rank) {
    const EncodedSetup sent = encode(setups[rank]);
    const RankSetup got = decode_setup(sent.bytes, sent.tensors);
    CHECK(encode(got).bytes == sent.bytes);
    const std::vector<BucketCut> cuts = got.buckets_of(0);
    REQUIRE(cuts.size() == 2);
    CHECK(cuts[1].chunks == ChunkRange{1, 1});
    CHECK(cuts[1].part == static_cast<std::int32_t>(rank % 2));
    CHECK(cuts[1].copy == static_cast<std::int32_t>(rank / 2));
    CHECK(cuts[1].parts == 2);
    CHECK(cuts[1].shards == 1);
    CHECK_FALSE(cuts[0].is_divided());
  }
}

/// A setup to be spoiled, and its group that divides.
struct SpoiledDivision : RankSetup {
  explicit SpoiledDivision(const RankSetup& sound) : RankSetup(sound) {}

  StageProgram& stage = own_program(stages);
  PlanTables& tables = own_tables(train);
  PlanGroup& group = *std::ranges::find(tables.groups, PlanGroup::Kind::Divided, &PlanGroup::kind);
  PlanBucket& bucket = tables.buckets[static_cast<std::size_t>(group.bucket)];
};

/// WrongDivision is a way to spoil a setup, after what its refusal says.
using WrongDivision = std::pair<std::string, std::function<void(SpoiledDivision&)>>;

/// Checks that a receiver refuses the setup, spoiled in each way.
void check_divisions_refused(const RankSetup& sound, std::span<const WrongDivision> wrongs) {
  for (const auto& [expected, spoil] : wrongs) {
    CAPTURE(expected);
    SpoiledDivision setup(sound);
    spoil(setup);
    const EncodedSetup sent = encode(setup);
    CHECK_THAT(refusal([&] { (void)decode_setup(sent.bytes, sent.tensors); }, Errc::PlanInvalid),
               ContainsSubstring(expected));
  }
}

TEST_CASE("SW-2: a setup that divides what cannot be divided is refused",
          "[executor][wire][experts][bad-input]") {
  const RankSetup sound = testing::divided_setups().front();
  REQUIRE(verify(sound).empty());
  const auto experts_of = [](SpoiledDivision& s) -> StageParameter& {
    return *std::ranges::find(s.stage.parameters, "experts0", &StageParameter::name);
  };
  const WrongDivision wrongs[] = {
      {"divides a bucket that there is not", [](auto& s) { s.group.bucket = 1 << 30; }},
      {"divides a bucket that there is not", [](auto& s) { s.group.bucket = -1; }},
      {"of other stages or chunks", [](auto& s) { s.bucket.stages.emplace_back(0); }},
      {"of other stages or chunks", [](auto& s) { s.bucket.chunks.count = 2; }},
      {"equal and separate ones of at least 2", [](auto& s) { s.group.sets[0].pop_back(); }},
      {"equal and separate ones of at least 2", [](auto& s) { s.group.sets.emplace_back(); }},
      {"equal and separate ones of at least 2",
       [](auto& s) { std::swap(s.group.sets[0][0], s.group.sets[0][1]); }},
      {"ranks that do not vote", [](auto& s) { s.group.sets[0][1] = Rank(9); }},
      {"is no region", [](auto& s) { s.stage.chunks[1].divided = false; }},
      {"sums or divides the bucket of another group of its kind",
       [](auto& s) { s.tables.groups.push_back(s.group); }},
      {"do not take the microbatches in their order",
       [](auto& s) { s.train.rank.first_microbatch = 1; }},
      {"on an accelerator", [](auto& s) { s.options.device = "cuda"; }},
      {"order that is decided", [](auto& s) { s.options.dispatch = Dispatch::Decided; }},
      {"a multiple of the 2 ranks",
       [&](auto& s) { s.stage.values.at(experts_of(s).value).sizes[0] = 3; }},
      {"which is tied",
       [](auto& s) {
         PlanGroup tie{.kind = PlanGroup::Kind::Tie,
                       .stages = {StageId(0)},
                       .parameters = {"experts0"},
                       .sets = {{Rank(0)}}};
         s.tables.groups.push_back(tie);
       }},
  };
  check_divisions_refused(sound, wrongs);
}

TEST_CASE("SW-2: copies of parts that do not fit each other are refused",
          "[executor][wire][experts][bad-input]") {
  const RankSetup sound = testing::divided_setups(/*copies=*/4).front();
  REQUIRE(verify(sound).empty());
  const std::string sets = "equal and separate ones of at least 2";
  const WrongDivision wrongs[] = {
      {sets,
       [](auto& s) {
         s.group.sets[1] = {Rank(1), Rank(2), Rank(3)};
       }},
      {sets,
       [](auto& s) {
         s.group.sets[1] = {Rank(1), Rank(2)};
       }},
      {sets, [](auto& s) { s.group.sets[1] = s.group.sets[0]; }},
      {"sums or divides the bucket of another",
       [](auto& s) {
         s.tables.groups.push_back(*std::ranges::find_if(s.tables.groups, &PlanGroup::sums_parts));
       }},
  };
  check_divisions_refused(sound, wrongs);
}

TEST_CASE("a shape or an evaluation that divides otherwise does not fit",
          "[executor][experts][bad-input]") {
  const RankSetup sound = testing::divided_setups().front();
  StageProgram whole = *sound.stages[0];
  whole.chunks[1].divided = false;
  CHECK_THAT(misfit(*sound.stages[0], whole), ContainsSubstring("divides other chunks"));
  CHECK_THAT(misfit_of_evaluation(*sound.stages[0], *sound.stages[0]),
             ContainsSubstring("divides weights among ranks"));
}

}  // namespace
}  // namespace stagecraft
