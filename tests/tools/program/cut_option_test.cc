#include "stagecraft/tools/program/cut_option.h"

#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("places of a cut are separated by commas", "[tools][cut]") {
  CHECK_FALSE(cut_option(std::nullopt));
  CHECK(cut_option("layers.4") == Cut(At{"layers.4"}));
  CHECK(cut_option("layers.4,op:12") == Cut(At{"layers.4", "op:12"}));
  for (const char* words : {"", ",", "layers.4,", ",op:12", "layers.4,,op:12"}) {
    CAPTURE(words);
    CHECK(refusal([&] { (void)cut_option(words); }) ==
          "--cut expects places such as layers.4,layers.8 or @FILE, found '" + std::string(words) +
              "'");
  }
}

TEST_CASE("a cut of a file may have the size of its microbatches", "[tools][cut]") {
  const tests::TemporaryFolder folder;
  const std::string planned =
      "@" + folder.write("planned.cut", "@microbatch-size 4\nop:0\nlayers.2  # the last two\n");
  CHECK(cut_option(planned) == Cut(At{"layers.2"}));
  CHECK(microbatch_size_of_cut(planned) == 4);
  const std::string sets = "@" + folder.write("sets.cut", "{0-3 8}\n{4-7}\n");
  CHECK(cut_option(sets) == Cut(OperatorSets{{{{0, 3}, {8, 8}}, {{4, 7}}}}));
  CHECK_FALSE(microbatch_size_of_cut(sets));
  CHECK_FALSE(microbatch_size_of_cut("layers.2"));
  CHECK_FALSE(microbatch_size_of_cut(std::nullopt));
}

TEST_CASE("a file of a cut that cannot be used is named, with its line",
          "[tools][cut][bad-input]") {
  const auto message = [](const std::string& words) {
    return refusal([&] { (void)cut_option(words); }, Errc::UsageFile);
  };
  CHECK(message("@/none/a.cut") ==
        "--cut expects a readable file behind the @, found no file at '/none/a.cut'");
  CHECK_THAT(message("@"), ContainsSubstring("found no file at ''"));
  CHECK_THAT(refusal([] { (void)microbatch_size_of_cut("@/none/a.cut"); }, Errc::UsageFile),
             ContainsSubstring("found no file at '/none/a.cut'"));
  const tests::TemporaryFolder folder;
  CHECK_THAT(message("@" + folder.write("empty.cut", "# nothing\n")),
             ContainsSubstring("empty.cut") && ContainsSubstring("a line for each stage"));
  CHECK_THAT(message("@" + folder.write("two.cut", "op:0\nlayers.1 layers.2\n")),
             ContainsSubstring("two.cut, line 2: ") && ContainsSubstring("layers.1 layers.2"));
}

TEST_CASE("a cut gives its number of stages, unless markers decide it", "[tools][cut]") {
  CHECK(stages_of(At{"a", "b"}) == 3);
  CHECK(stages_of(At{}) == 1);
  CHECK(stages_of(OperatorSets{{{{0, 3}}, {{4, 7}}}}) == 2);
  CHECK(stages_of(Balanced{.stages = 5}) == 5);
  CHECK_FALSE(stages_of(AtMarkers{}));
}

TEST_CASE("programs get whole bytes of the stages, and times as they are", "[tools][cut][json]") {
  const CutReport report{.stages = {{.name = "s0", .first = 0, .operators = 7},
                                    {.name = "s1",
                                     .first = 7,
                                     .operators = 5,
                                     .place = "between a and b",
                                     .time = 0.25,
                                     .parameter_bytes = 1024,
                                     .crossing_bytes = 96}}};
  const nlohmann::ordered_json stages = cut_json(report);
  REQUIRE(stages.size() == 2);
  CHECK(stages[1].dump() ==
        R"({"name":"s1","first_operator":7,"operators":5,"place":"between a and b",)"
        R"("seconds":0.25,"parameter_bytes":1024,"crossing_bytes":96})");
  CHECK(stages[0].at("place") == "");
}

}  // namespace
}  // namespace stagecraft::tools
