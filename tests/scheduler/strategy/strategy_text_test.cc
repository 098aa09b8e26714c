/// Tests the text form of strategies.
#include "stagecraft/scheduler/strategy/strategy_text.h"

#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string refusal_of_text(const std::string& text) {
  try {
    static_cast<void>(parse_strategy(text));
  } catch (const Error& error) {
    CHECK(error.code() == Errc::ScheduleParse);
    return error.message();
  }
  FAIL("the text was taken: " << text);
  return {};
}

TEST_CASE("a strategy is read as it was written", "[scheduler][strategy]") {
  const std::string text =
      "split {} dim=MB n=8\n"
      "place {PP:0} on [0,2] stream=pp\n"
      "place {PP:*} on [1,3]\n"
      "replicate {PP:0} on [0,2] bucket_size=25M reduce_stream=dp gather_stream=ag shard_optimizer "
      "shard_grads shard_params\n"
      "shard {EP:*} on [0,2] stream=ep\n"
      "shard {XP:*} on [0,2,4,6] n=2 stream=ep\n"
      "order [{PP:0,MB:0,PASS:F}] [{PP:0,MB:1,PASS:BI},{PP:0,MB:2,PASS:F}] [{PP:0,MB:1,PASS:BW}]\n";
  const Strategy strategy = parse_strategy(text);
  CHECK(strategy.directives().size() == 7);
  CHECK(to_string(strategy) == text);
  CHECK(parse_strategy(to_string(strategy)) == strategy);
}

TEST_CASE("a bucket's bytes are written in the form of every option", "[scheduler][strategy]") {
  for (const auto& [form, written] : {std::pair("1.5G", "1536M"),
                                      std::pair("1.5GiB", "1536M"),
                                      std::pair("2T", "2048G"),
                                      std::pair("64K", "64K"),
                                      std::pair("300000", "300000")}) {
    const std::string begin = "replicate {PP:0} on [0,2] bucket_size=";
    CHECK(to_string(parse_strategy(fmt::format("{}{} reduce_stream=dp\n", begin, form))) ==
          fmt::format("{}{} reduce_stream=dp\n", begin, written));
  }
}

TEST_CASE("blanks and comments of a strategy do not count", "[scheduler][strategy]") {
  CHECK(parse_strategy(
            "# a pipeline\n\n  split {  }\tn = 8 # in eight\nplace { PP : 0 } on [ 0 , 2 ]") ==
        parse_strategy("split {} n=8\nplace {PP:0} on [0,2]\n"));
}

TEST_CASE("every builder's strategy is read as it was written", "[scheduler][strategy]") {
  for (const BuilderInfo& builder : builders()) {
    INFO(builder.name);
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    const Schedule schedule = build_schedule(builder.name, request);
    const Strategy strategy = strategy_of(schedule, Layout::of(schedule));
    CHECK(parse_strategy(to_string(strategy)) == strategy);
  }
}

TEST_CASE("a wrong directive is refused with its place and its form", "[scheduler][strategy]") {
  CHECK_THAT(refusal_of_text("split {} n=8\nplce {PP:0} on [0]\n"),
             ContainsSubstring("line 2, column 1") && ContainsSubstring("place"));
  CHECK_THAT(refusal_of_text("place {PP=0} on [0]"), ContainsSubstring("a tag has a number"));
  CHECK_THAT(refusal_of_text("place {PP:0} [0]"), ContainsSubstring("expected the ranks"));
  CHECK_THAT(refusal_of_text("place {PP:0} on [0"), ContainsSubstring("it ends the ranks"));
  CHECK_THAT(refusal_of_text("place {PP:0} on [0] speed=3"),
             ContainsSubstring("place takes stream=NAME"));
  CHECK_THAT(refusal_of_text("replicate {PP:0} on [0] bucket_size=big"),
             ContainsSubstring("column 37: expected a number of bytes from 1 to 1024T"));
  CHECK_THAT(refusal_of_text("replicate {PP:0} on [0] bucket_size=4X"),
             ContainsSubstring("expected a number of bytes"));
  CHECK_THAT(refusal_of_text("order {PP:0}"), ContainsSubstring("order takes groups"));
  CHECK_THAT(refusal_of_text("order [{PASS:X}]"), ContainsSubstring("PASS is F, B, BI or BW"));
  CHECK_THAT(refusal_of_text("order [{PP:0,EP:1,PP:0}]"), ContainsSubstring("'PP' twice"));
  CHECK_THAT(refusal_of_text("order [{PASS:F,PP:0,PASS:B}]"), ContainsSubstring("'PASS' twice"));
  CHECK_THAT(refusal_of_text("split {} dim= # MB"), ContainsSubstring("expected a name"));
  CHECK_THAT(refusal_of_text("place {PP:0} on [0] stream="), ContainsSubstring("expected a name"));
  CHECK_THAT(refusal_of_text("split {} n=99999999999"),
             ContainsSubstring("number of microbatches"));
}

TEST_CASE("all faults in the text of a strategy are told at once", "[scheduler][strategy]") {
  const std::string told = refusal_of_text("splt {} n=2\nplace {PP:0}\norder []\n");
  CHECK_THAT(told, ContainsSubstring("line 1"));
  CHECK_THAT(told, ContainsSubstring("line 2"));
  CHECK_THAT(told, ContainsSubstring("line 3"));
}

TEST_CASE("the name that a directive should have is told, not an empty one",
          "[scheduler][strategy][bad-input]") {
  CHECK_THAT(refusal_of_text("plce {PP:0} on [0]\n"),
             ContainsSubstring("line 1, column 1: 'plce' is no directive; did you mean place?"));
  CHECK_THAT(refusal_of_text("{\"rows\": 2}\n"), ContainsSubstring("'{\"rows\":' is no directive"));
}

TEST_CASE("a strategy is known by the form of its lines, also with a mistyped name",
          "[scheduler][strategy]") {
  CHECK(looks_like_strategy("# copies\nsplit {} n=2\n"));
  CHECK(looks_like_strategy("splt {} n=2\n"));
  CHECK(looks_like_strategy("splt n=2\nplace{PP:0} on [0]\n"));
  CHECK(looks_like_strategy("ordr [{PP:0,MB:0,PASS:F}]\n"));
  CHECK_FALSE(looks_like_strategy(""));
  CHECK_FALSE(looks_like_strategy("0F0 0B0\n"));
  CHECK_FALSE(looks_like_strategy("@place 0=0,2\nF0 B0\n"));
  CHECK_FALSE(looks_like_strategy("{\"rows\": [[\"0F0\"]]}"));
  CHECK_FALSE(looks_like_strategy("[{\"op\": \"split\"}]"));
  CHECK_FALSE(looks_like_strategy("[[Task(stage_id=0)]]"));
}

TEST_CASE("the lines of a strategy do not count when two are compared", "[scheduler][strategy]") {
  const Strategy far = parse_strategy("\n\nsplit {} n=2\norder [{PP:0}]\n");
  CHECK(far == parse_strategy("split {} n=2\norder [{PP:0}]\n"));
  CHECK(far.place_of(1) == "directive 2 (line 4)");
  CHECK(far.without<OrderDirective>() == parse_strategy("split {} n=2\n"));
  CHECK(far.without<OrderDirective>().place_of(0) == "directive 1 (line 3)");
}

}  // namespace
}  // namespace stagecraft
