#include "stagecraft/scheduler/formats/pytorch_csv.h"

#include <string>
#include <string_view>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipev.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string csv_complaint(const std::string& text) {
  return refusal([&] { (void)parse_pytorch_csv(text); }, Errc::ScheduleParse);
}

TEST_CASE("blanks of a compute-only file are bubbles", "[scheduler][pytorch_csv]") {
  const ReadSchedule read = parse_pytorch_csv(
      "0F0,0F1,,0I0,0W0,,0I1,0W1\r\n"
      ",1F0,1I0,1F1,1W0,1I1,1W1,");
  CHECK(read.communication.empty());
  CHECK(read.schedule ==
        Schedule::parse("0F0 0F1 . 0I0 0W0 . 0I1 0W1\n. 1F0 1I0 1F1 1W0 1I1 1W1 ."));
  CHECK(validate(read.schedule, read.schedule.stage_graph()).empty());
}

TEST_CASE("a file without blanks is a list, ragged rows and quotes are read",
          "[scheduler][pytorch_csv]") {
  const ReadSchedule read = parse_pytorch_csv("\"0F0\", 0F1 ,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  CHECK(read.schedule == one_f_one_b(2, 2).to_list());
  CHECK(parse_pytorch_csv("0F0,,0B0\n,1F0").schedule.rows()[1].size() == 3);
}

TEST_CASE("overlapped actions become a group", "[scheduler][pytorch_csv]") {
  CHECK(to_string(parse_pytorch_csv("(0F7;7B3)OVERLAP_F_B").schedule.rows()[0][0]) == "0F7|7B3");
  CHECK(to_string(parse_pytorch_csv("( 0F7 ; 7B3 )OVERLAP_F_B").schedule.rows()[0][0]) ==
        "0F7|7B3");
}

TEST_CASE("communication is kept with its place among the compute cells",
          "[scheduler][pytorch_csv]") {
  const ReadSchedule read = parse_pytorch_csv(
      "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
      "1RECV_F0,1F0,1B0,1SEND_B0\n");
  CHECK(read.schedule == Schedule::parse("@form list\n0F0 0B0\n1F0 1B0"));
  REQUIRE(read.communication.size() == 7);
  CHECK(read.communication[2] ==
        CommAction{CommKind::RecvBackward, StageId(0), Microbatch(0), 0, 1});
  CHECK(to_string(read.communication[6]) == "1SEND_B0");
  CHECK(read.communication[6].position == 2);
}

TEST_CASE("compute-only files go both ways", "[scheduler][pytorch_csv]") {
  for (const Schedule& schedule : {one_f_one_b(4, 8), zb_v(3, 6), dualpipev(2, 4)}) {
    CHECK(parse_pytorch_csv(to_pytorch_csv(schedule)).schedule == schedule);
    CHECK(parse_pytorch_csv(to_pytorch_csv(schedule.to_list())).schedule == schedule.to_list());
  }
}

TEST_CASE("communication is written where the tasks need it", "[scheduler][pytorch_csv]") {
  const Schedule schedule = one_f_one_b(2, 1);
  CHECK(to_pytorch_comms_csv(schedule, schedule.stage_graph()) ==
        "0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0RESHARD\n"
        "1UNSHARD,1RECV_F0,1F0,1B0,1SEND_B0,1REDUCE_GRAD,1RESHARD\n");
  const Schedule turn = zb_v(1, 1);  // both stages on one row: nothing is sent
  CHECK(to_pytorch_comms_csv(turn, turn.stage_graph()).find("SEND") == std::string::npos);
  const Schedule many = dualpipev(4, 8);
  CHECK(parse_pytorch_csv(to_pytorch_comms_csv(many, many.stage_graph())).schedule ==
        many.to_list());
}

TEST_CASE("what PyTorch's reader takes silently is named with its place",
          "[scheduler][pytorch_csv]") {
  CHECK_THAT(csv_complaint("0F0,0B0\n1F0, 0F3junk"),
             ContainsSubstring("line 2, column 6") && ContainsSubstring("'0F3junk'"));
  const char* bad = GENERATE("0F3.5",
                             "0F3 0B0",
                             "F0",
                             "0f0",
                             "0U",
                             "0B",
                             "0BW1",
                             "0SEND_F",
                             "0SEND_X1",
                             "0UNSHARD1",
                             "0RESHARD 1",
                             "(0F0;0B1)",
                             "(0F0)OVERLAP_F_B",
                             "(0F0;0SEND_F1)OVERLAP_F_B",
                             "(0F0;0B1OVERLAP_F_B",
                             "\xd9\xa0"
                             "F0",
                             "70000F0",
                             "0F99999999999",
                             "0F0;0B0");
  CAPTURE(bad);
  CHECK_THAT(csv_complaint(bad), ContainsSubstring("line 1, column 1"));
}

TEST_CASE("all actions outside the grammar are told at once, and what to do once",
          "[scheduler][pytorch_csv]") {
  const std::string all = csv_complaint("0F0,WHAT,0B0\n1F0,1BW1,1X0\n(0F0)OVERLAP_F_B");
  CHECK_THAT(all,
             ContainsSubstring("4 faults\nline 1, column 5: 'WHAT' is not an action; an action"));
  CHECK_THAT(all,
             ContainsSubstring("\nline 2, column 5: '1BW1' is not an action; some writers mean"));
  CHECK_THAT(all, ContainsSubstring("\nline 2, column 10: '1X0' is not an action\n"));
  CHECK_THAT(all, ContainsSubstring("\nline 3, column 1: '(0F0)OVERLAP_F_B'"));
}

TEST_CASE("words of other dialects are answered with ours", "[scheduler][pytorch_csv]") {
  CHECK_THAT(csv_complaint("0BW1"), ContainsSubstring("write W or B"));
  CHECK_THAT(csv_complaint("0BI1"), ContainsSubstring("is I"));
  CHECK_THAT(csv_complaint("0F0,0U"),
             ContainsSubstring("line 1, column 5") && ContainsSubstring("no updates"));
  CHECK_THAT(csv_complaint("0send_f1"), ContainsSubstring("'0SEND_F1'"));
}

TEST_CASE("a file without compute cells is refused", "[scheduler][pytorch_csv]") {
  (void)csv_complaint("");
  (void)csv_complaint("\n\n");
  (void)csv_complaint("0UNSHARD");
  (void)csv_complaint(",,");
}

TEST_CASE("blanks are not multiplied into more cells than a schedule has",
          "[scheduler][pytorch_csv]") {
  CHECK_THAT(csv_complaint("0F0" + std::string(20'000, ',') + std::string(20'000, '\n')),
             ContainsSubstring("16777216 cells"));
  CHECK_THAT(csv_complaint("0F0" + std::string(70'000, '\n')),
             ContainsSubstring("line 65537, column 1"));
}

TEST_CASE("what the format cannot say is refused", "[scheduler][pytorch_csv]") {
  const auto refused = [](const Schedule& schedule, std::string_view format) {
    return refusal(
        [&] { (void)write_schedule(schedule, schedule.stage_graph(), find_format(format)); },
        Errc::ScheduleParameter);
  };
  CHECK_THAT(refused(Schedule::parse("0F0 0B0 0U"), "pytorch"), ContainsSubstring("an update"));
  CHECK_THAT(refused(Schedule::parse("0F0|1F0"), "pytorch"),
             ContainsSubstring("one forward with one backward"));
  const Schedule dag = one_f_one_b(StageGraph::from_edges(3, {{0, 2}, {1, 2}}), 2);
  CHECK_THAT(refused(dag, "pytorch-comms"), ContainsSubstring("not part of one chain"));
}

}  // namespace
}  // namespace stagecraft
