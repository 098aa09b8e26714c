#include <algorithm>
#include <optional>
#include <string>
#include <tuple>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/model/communication.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tests/scheduler/rules/codes.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using test::codes;
using test::Rules;

std::vector<Violation> check(const ReadSchedule& read, const StageGraph& graph) {
  const int microbatches =
      read.schedule.microbatches() * graph.replicas();  // the file cannot express replicas
  return validate(
      read.schedule, graph, {.microbatches = microbatches, .communication = read.communication});
}

std::vector<Violation> check(const std::string& csv) {
  const ReadSchedule read = parse_pytorch_csv(csv);
  return check(read, read.schedule.stage_graph());
}

/// Returns the file with `from`, which must occur once, replaced by `to`.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  REQUIRE(text.find(from, at + 1) == std::string::npos);
  return text.replace(at, from.size(), to);
}

const std::string kPair =
    "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
    "1UNSHARD,1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n";

TEST_CASE("communication that fits its tasks breaks no rule", "[scheduler][communication]") {
  CHECK(codes(check(kPair)).empty());
}

TEST_CASE("V31: a send or a receive without its other end is named", "[scheduler][communication]") {
  const auto no_send = check(with(kPair, "0SEND_F1,", ""));
  REQUIRE(codes(no_send) == Rules{"V31"});
  CHECK(no_send[0].missing == "0SEND_F1");
  CHECK(no_send[0].row == 0);
  CHECK(to_string(*no_send[0].task) == "0F1");
  const auto no_receive = check(with(kPair, "0RECV_B1,", ""));
  REQUIRE(codes(no_receive) == Rules{"V31"});
  CHECK(no_receive[0].missing == "0RECV_B1");
  CHECK_THAT(no_receive[0].message, ContainsSubstring("before 0B1"));
  CHECK(codes(check(with(kPair, "1RECV_F1,", "1RECV_F0,"))) == Rules{"V08", "V31"});
}

TEST_CASE("V31: a transfer that no task needs is named with its reason",
          "[scheduler][communication]") {
  const auto last = check(with(kPair, "1SEND_B1", "1SEND_B1,1SEND_F1"));
  REQUIRE(codes(last) == Rules{"V31"});
  CHECK_THAT(last[0].message, ContainsSubstring("feeds no other stage"));
  const auto first = check(with(kPair, "0UNSHARD", "0UNSHARD,0RECV_F0"));
  REQUIRE(codes(first) == Rules{"V31"});
  CHECK_THAT(first[0].message, ContainsSubstring("reads from no other stage"));
  const auto same_row = check("0F0,0SEND_F0,1RECV_F0,1F0,1B0,0B0\n");
  CHECK(codes(same_row) == Rules{"V31", "V31"});
  CHECK_THAT(same_row[0].message, ContainsSubstring("stays there"));
}

TEST_CASE("V31: a send waits for its producer, a receive comes before its consumer",
          "[scheduler][communication]") {
  const auto early = check(with(kPair, "0F1,0SEND_F1", "0SEND_F1,0F1"));
  REQUIRE(codes(early) == Rules{"V31"});
  CHECK_THAT(early[0].message,
             ContainsSubstring("0SEND_F1 (row 0, after 0F0)") && ContainsSubstring("after 0F1"));
  const auto late = check(with(kPair, "0RECV_B1,0B1", "0B1,0RECV_B1"));
  REQUIRE(codes(late) == Rules{"V31"});
  CHECK(to_string(*late[0].task) == "0B1");
}

TEST_CASE("V31: receives in another order than the sends cross", "[scheduler][communication]") {
  const auto found = check(with(with(kPair, "1RECV_F0,1F0,1RECV_F1", "1RECV_F1,1RECV_F0,1F0"),
                                "0SEND_F0,0F1",
                                "0SEND_F0,0F1"));
  REQUIRE(codes(found) == Rules{"V31"});
  CHECK_THAT(found[0].message,
             ContainsSubstring("0SEND_F0 before 0SEND_F1") &&
                 ContainsSubstring("exchange 1RECV_F1 and 1RECV_F0"));
}

TEST_CASE("V35: an order that one stream per row cannot serve is a circle of transfers",
          "[scheduler][communication]") {
  // Each row first waits for a value that the other row sends only later.
  const std::string blocked =
      "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0B0,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n";
  const auto found = check(blocked);
  REQUIRE(codes(found) == Rules{"V35"});
  CHECK(found[0].cycle.size() == 2);
  CHECK_THAT(
      found[0].message,
      ContainsSubstring("0SEND_F1 with 1RECV_F1") && ContainsSubstring("1SEND_B0 with 0RECV_B0"));
  const ReadSchedule read = parse_pytorch_csv(blocked);
  CHECK(validate(read.schedule,
                 read.schedule.stage_graph(),
                 {.ordered_transfers = TransferStreams::PerPeerAndDirection,
                  .communication = read.communication})
            .empty());
}

TEST_CASE("V35: a circle of transfers is told by its turns", "[scheduler][communication]") {
  // In both queues the transfers of microbatches 1 and 2 are adjacent: they take one turn each.
  const auto found = check(
      "0F0,0SEND_F0,0RECV_B0,0F1,0SEND_F1,0F2,0SEND_F2,0B0,0RECV_B1,0B1,0RECV_B2,0B2\n"
      "1RECV_F0,1F0,1RECV_F1,1RECV_F2,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1F2,1B2,1SEND_B2\n");
  REQUIRE(codes(found) == Rules{"V35"});
  CHECK(found[0].cycle.size() == 2);
  CHECK(found[0].cells.size() == 2);
  CHECK_THAT(found[0].missing, ContainsSubstring("1SEND_B0 with 0RECV_B0"));
}

TEST_CASE("communication on another row, twice, or of what does not exist",
          "[scheduler][communication]") {
  CHECK(codes(check(with(kPair, "1RESHARD", "1RESHARD,0SEND_F0"))) == Rules{"V07"});
  CHECK(codes(check(with(kPair, "0SEND_F1", "0SEND_F1,0SEND_F1"))) == Rules{"V08"});
  CHECK(codes(check(with(kPair, "1RESHARD", "1RESHARD,1SEND_B2"))) == Rules{"V05"});
  CHECK(codes(check(with(kPair, "1RESHARD", "1RESHARD,7SEND_B0"))) == Rules{"V04"});
}

TEST_CASE("parameters are there while a stage works and its gradients reduced at the end",
          "[scheduler][communication]") {
  const auto late = check(with(kPair, "0UNSHARD,0F0", "0F0,0UNSHARD"));
  REQUIRE(codes(late) == Rules{"V25"});
  CHECK(to_string(*late[0].task) == "0F0");
  CHECK(codes(check(with(kPair, "0B1,0REDUCE_GRAD,0RESHARD", "0RESHARD,0B1,0REDUCE_GRAD"))) ==
        Rules{"V25"});
  const auto early = check(with(kPair, "1B1,1SEND_B1,1REDUCE_GRAD", "1REDUCE_GRAD,1B1,1SEND_B1"));
  REQUIRE(codes(early) == Rules{"V24"});
  CHECK(early[0].missing == "1REDUCE_GRAD");
  CHECK(codes(check(with(kPair, "1REDUCE_GRAD", "1REDUCE_GRAD,1REDUCE_GRAD"))) == Rules{"V26"});
  CHECK(codes(check(with(kPair, "1RESHARD", "1RESHARD,1RESHARD"))) == Rules{"V08"});
  CHECK(codes(check(with(kPair, "1UNSHARD", "1UNSHARD,1UNSHARD"))) == Rules{"V08"});
  // Parameters may be released and gathered again in between.
  CHECK(codes(check(with(kPair, "0F1,0SEND_F1", "0F1,0RESHARD,0SEND_F1,0UNSHARD"))).empty());
  // A file that shards nothing does not mention sharding.
  CHECK(codes(check(with(with(kPair, "0UNSHARD,", ""), ",0RESHARD", ""))).empty());
}

TEST_CASE("a compute-only order with its reductions lacks no transfer",
          "[scheduler][communication]") {
  CHECK(codes(check("0F0,0B0,0REDUCE_GRAD\n1F0,1B0,1REDUCE_GRAD\n")).empty());
  CHECK(codes(check("0F0,0REDUCE_GRAD,0B0\n1F0,1B0\n")) == Rules{"V24"});
}

TEST_CASE("a transfer between stages of several neighbors has no name in the file",
          "[scheduler][communication]") {
  const ReadSchedule read = parse_pytorch_csv("0F0,0SEND_F0,0B0\n1F0,1B0\n2F0,2B0\n");
  const auto found = check(read, StageGraph::from_edges(3, {{0, 2}, {1, 2}}));
  CHECK(codes(found) == Rules{"V31", "V31"});
  CHECK_THAT(found[0].message, ContainsSubstring("stage 2 reads 2"));
}

TEST_CASE("what the writer lays out for any builder runs on one stream per row",
          "[scheduler][communication][property]") {
  for (const BuilderInfo& builder : builders()) {
    int written = 0;
    for (const auto& [devices, microbatches, chunks] :
         {std::tuple{1, 2, 2}, {2, 4, 2}, {2, 5, 1}, {4, 8, 2}, {4, 8, 3}, {6, 12, 2}}) {
      CAPTURE(builder.name, devices, microbatches, chunks);
      BuildRequest request{.devices = devices, .microbatches = microbatches};
      if (builder.chunks == ChunkRule::Open) {
        request.chunks = chunks;
      }
      if (builder.takes_graph) {
        request.graph = StageGraph::chain(devices);
      }
      std::optional<Schedule> schedule;
      try {
        schedule = build_schedule(builder.name, request);
      } catch (const Error& error) {
        REQUIRE(error.code() == Errc::ScheduleParameter);  // V34
        continue;
      }
      ++written;
      const StageGraph graph = schedule->stage_graph();
      const ReadSchedule read = parse_pytorch_csv(to_pytorch_comms_csv(*schedule, graph));
      REQUIRE((read.schedule == schedule->to_list()));
      REQUIRE(codes(check(read, graph)).empty());
      // The check finds each transfer that is left out.
      for (std::size_t i = 0; i < read.communication.size(); i += 7) {
        ReadSchedule less = read;
        if (is_transfer(less.communication[i].kind)) {
          less.communication.erase(less.communication.begin() + static_cast<std::ptrdiff_t>(i));
          REQUIRE(codes(check(less, graph)) == Rules{"V31"});
        }
      }
    }
    CAPTURE(builder.name);
    CHECK(written > 0);
  }
}

TEST_CASE("exchanging two receives of one sender in a row is found",
          "[scheduler][communication][property]") {
  const Schedule schedule = one_f_one_b(4, 8);
  const ReadSchedule read =
      parse_pytorch_csv(to_pytorch_comms_csv(schedule, schedule.stage_graph()));
  int exchanged = 0;
  for (std::size_t i = 0; i + 1 < read.communication.size(); ++i) {
    for (std::size_t j = i + 1; j < read.communication.size(); ++j) {
      const CommAction& a = read.communication[i];
      const CommAction& b = read.communication[j];
      if (a.row != b.row || a.kind != b.kind || !is_transfer(a.kind)) {
        continue;
      }
      ReadSchedule wrong = read;
      std::swap(wrong.communication[i].microbatch, wrong.communication[j].microbatch);
      ++exchanged;
      const Rules rules = codes(check(wrong, schedule.stage_graph()));
      CAPTURE(to_string(a), to_string(b), a.row);
      REQUIRE_FALSE(rules.empty());
      REQUIRE(std::ranges::all_of(rules, [](const std::string& rule) { return rule == "V31"; }));
    }
  }
  CHECK(exchanged > 100);
}

TEST_CASE("communication at a place or row that does not exist is said, not followed",
          "[scheduler][communication]") {
  const std::vector<CommAction> actions{{CommKind::SendForward, StageId(0), Microbatch(0), 9, 0},
                                        {CommKind::Unshard, StageId(0), Microbatch(0), -1, 0},
                                        {CommKind::ReduceGrad, StageId(0), Microbatch(0), 0, 99},
                                        {CommKind::SendBackward, StageId(0), Microbatch(0), 0, 99}};
  const Schedule schedule = one_f_one_b(1, 1);
  CHECK(codes(validate(schedule, schedule.stage_graph(), {.communication = actions})) ==
        Rules{"V02", "V31"});
}

}  // namespace
}  // namespace stagecraft
