#include "stagecraft/tools/train/report/rank_table.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {

TEST_CASE("the closing table has a line per rank under one heading", "[tools][table]") {
  const std::string table = rank_table({{"0", 1.0, 2.0, 0.25, 0.5, 1024, 4096, 16, 512},
                                        {"1,2", 1.5, 2.5, 0.25, 0.125, 2048, 8192, 32, 768}});
  CHECK(std::count(table.begin(), table.end(), '\n') == 3);
  CHECK_THAT(table, Catch::Matchers::ContainsSubstring("1,2"));
  CHECK_THAT(table, Catch::Matchers::ContainsSubstring("2.0 KiB"));
  for (const char* part : {"peak memory", "live", "cached", "8.0 KiB", "32 B", "768 B"}) {
    CHECK_THAT(table, Catch::Matchers::ContainsSubstring(part));
  }
}

TEST_CASE("the closing table and its object have bills beside the peaks, if there are some",
          "[tools][table][json]") {
  std::vector<RankTotals> ranks{{"0", 1.0, 2.0, 0.25, 0.5, 1024, 4096, 16, 512},
                                {"1,2", 1.5, 2.5, 0.25, 0.125, 2048, 8192, 32, 768}};
  const std::string without = rank_table(ranks);
  CHECK(without.find("bill") == std::string::npos);
  CHECK_FALSE(rank_json(ranks).at("ranks").at(0).contains("billed_peak_bytes"));
  ranks[0].memory_billed = 5120;
  ranks[1].memory_billed = 9216;
  const std::string with = rank_table(ranks);
  CHECK_THAT(with,
             Catch::Matchers::Matches("[^\n]* peak memory +bill +live +cached\n"
                                      "[^\n]* 4.0 KiB +5.0 KiB +16 B +512 B\n"
                                      "[^\n]* 8.0 KiB +9.0 KiB +32 B +768 B\n"));
  CHECK(with.find('\n') == without.find('\n') + 13);  // lines are equally long
  CHECK(with.size() == without.size() + 3 * 13);
  CHECK(rank_json(ranks).at("ranks").at(1).at("billed_peak_bytes") == 9216);
}

TEST_CASE("the closing line names the busiest rank and the fullest", "[tools][table]") {
  CHECK(rank_line({{"0", 1.0, 2.0, 0.25, 0.5, 1024, 8192, 16, 512},
                   {"1,2", 1.5, 2.5, 0.25, 0.125, 2048, 4096, 32, 768}}) ==
        "busiest: rank 1, 4.25 s of computing; most memory: rank 0, 8.0 KiB\n");
}

TEST_CASE("programs get the same figures of every rank", "[tools][table][json]") {
  const nlohmann::ordered_json object =
      rank_json({{"0", 1.0, 2.0, 0.25, 0.5, 1024, 4096, 16, 512},
                 {"1,2", 1.5, 2.5, 0.25, 0.125, 2048, 8192, 32, 768}});
  CHECK(object.at("event") == "ranks");
  const auto& last = object.at("ranks").at(1);
  CHECK(last.at("rank") == 1);
  CHECK(last.at("stages") == "1,2");
  CHECK(last.at("peak_activation_bytes") == 2048);
  CHECK(last.at("peak_bytes") == 8192);
  CHECK(last.at("cached_bytes") == 768);
}

}  // namespace stagecraft::tools
