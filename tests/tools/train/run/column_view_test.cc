#include "stagecraft/tools/train/run/column_view.h"

#include <sstream>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

const DispatchedColumn kColumn{.number = 1,
                               .columns = 6,
                               .tasks = {{.rank = Rank(0),
                                          .task = {CellKind::Forward, StageId(0), Microbatch(1)},
                                          .values = {{false, {4, 8}, 2.5}}},
                                         {.rank = Rank(1),
                                          .task = {CellKind::Backward, StageId(1), Microbatch(0)},
                                          .values = {{true, {4, 8}, 0.25}}}}};

TEST_CASE("a column is shown, and waits for a line", "[tools][column-view]") {
  std::istringstream in("\n\nrest");
  std::ostringstream out, err;
  Console console{in, out, err};
  RunOutput output(console);
  const auto progress = make_progress(ProgressForm::Plain, output);
  const auto view = column_view(*progress, in);
  view(kColumn);
  CHECK(out.str() ==
        "column 2 of 6\n"
        "  rank 0   0F1  [4, 8] norm 2.5\n"
        "  rank 1   1B0  gradient [4, 8] norm 0.25\n");
  CHECK(in.tellg() == 1);
  for (int i = 0; i < 3; ++i) {
    view(kColumn);  // also after the end of the input
  }
  CHECK(in.eof());
}

TEST_CASE("a column is an event for programs", "[tools][column-view]") {
  std::istringstream in;
  std::ostringstream out, err;
  Console console{in, out, err};
  RunOutput output(console);
  const auto progress = make_progress(ProgressForm::JsonLines, output);
  column_view(*progress, in)(kColumn);
  CHECK_THAT(out.str(),
             ContainsSubstring(R"("event":"column","column":1,"columns":6,"tasks":[)"
                               R"({"rank":0,"task":"0F1","values":[{"gradient":false,)"
                               R"("sizes":[4,8],"norm":2.5}]},)"));
}

}  // namespace
}  // namespace stagecraft::tools
