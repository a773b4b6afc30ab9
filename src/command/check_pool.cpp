#include "command/check_pool.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "checks/checks.h"
#include "core/child_process.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/machine.h"

namespace gradflow {
namespace {

/// A check for one seed.
struct SeededCheck {
  const OperatorCheck* check;
  std::int64_t seed;
  double cost;  ///< expected, seconds
};

CheckNumber made(const SeededCheck& task) {
  const auto start = std::chrono::steady_clock::now();
  CheckNumber number;
  try {
    number.value = run_check(*task.check, task.seed);
  } catch (const Error& error) {
    number.failure = error.lines().front();
  } catch (const std::exception& error) {
    number.failure = error.what();
  }
  number.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return number;
}

/// A process that makes every `jobs`-th task from the `first` on and sends each number as it comes.
std::unique_ptr<ChildProcess> process_of(std::span<const SeededCheck> tasks, std::size_t first, std::size_t jobs) {
  return std::make_unique<ChildProcess>([=](Channel& channel) {
    catch_interrupts(SecondSigint::waits);  // it ends with its parent, which hears of every signal too
    at::set_num_threads(1);
    for (std::size_t i = first; i < tasks.size() && interrupted() == 0; i += jobs) {
      const CheckNumber number = made(tasks[i]);
      // Every bit of the number must arrive, also of one that JSON has no word for.
      const nlohmann::json message = {std::bit_cast<std::uint64_t>(number.value), number.seconds, number.failure};
      if (!channel.send(message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace))) return;
    }
  });
}

struct Worker {
  std::unique_ptr<ChildProcess> process;
  std::size_t next;  ///< place of the task whose number it sends next
};

/// The numbers of all tasks, in their order, from `jobs` processes. Throws Error soon after a signal: a check leaves
/// nothing behind and is made again, so those at hand are not waited for.
std::vector<CheckNumber> made_by_workers(std::span<const SeededCheck> tasks, std::size_t jobs) {
  std::vector<Worker> workers;
  for (std::size_t w = 0; w < jobs; ++w) workers.push_back({process_of(tasks, w, jobs), w});
  std::vector<CheckNumber> numbers(tasks.size(), {.failure = "its process ended before it was made"});
  while (!workers.empty() && interrupted() == 0) {
    std::vector<pollfd> ends;
    for (const Worker& each : workers)
      ends.push_back({.fd = each.process->channel().descriptor(), .events = POLLIN, .revents = 0});
    // Not longer: a signal may arrive just before the wait begins.
    if (::poll(ends.data(), ends.size(), 100) <= 0) continue;
    for (std::size_t w = 0; w < ends.size(); ++w) {
      if (ends[w].revents == 0) continue;
      const auto message = workers[w].process->channel().receive();
      if (!message) {
        workers[w].process->wait();
        workers[w].process.reset();
        continue;
      }
      const auto json = nlohmann::json::parse(*message);
      numbers[workers[w].next] = {std::bit_cast<double>(json[0].get<std::uint64_t>()), json[1], json[2]};
      workers[w].next += jobs;
    }
    std::erase_if(workers, [](const Worker& each) { return each.process == nullptr; });
  }
  if (interrupted() != 0) throw Error("interrupted; the same command goes on where it ended", Exit::interrupted);
  return numbers;
}

}  // namespace

std::vector<std::vector<CheckNumber>> run_checks(std::span<const Claim> claims, std::int64_t jobs) {
  std::vector<SeededCheck> tasks;
  std::vector<std::vector<std::size_t>> wanted(claims.size());  // places in `tasks`
  for (std::size_t c = 0; c < claims.size(); ++c) {
    if (!claims[c].check) continue;
    for (const std::int64_t seed : claims[c].seeds) {
      const auto same = std::find_if(tasks.begin(), tasks.end(), [&](const SeededCheck& task) {
        return task.seed == seed && *task.check == *claims[c].check;
      });
      wanted[c].push_back(static_cast<std::size_t>(same - tasks.begin()));
      const double cost = claims[c].seconds / static_cast<double>(claims[c].seeds.size());
      if (same == tasks.end()) tasks.push_back({&*claims[c].check, seed, cost});
    }
  }
  // The long ones first, dealt out in turn: then all workers end at about the same time.
  std::vector<std::size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return tasks[a].cost > tasks[b].cost; });
  std::vector<SeededCheck> dealt;
  for (const std::size_t i : order) dealt.push_back(tasks[i]);

  const auto count = std::min(dealt.size(), static_cast<std::size_t>(jobs > 0 ? jobs : usable_cores()));
  const std::vector<CheckNumber> as_dealt = made_by_workers(dealt, count);
  std::vector<CheckNumber> numbers(tasks.size());
  for (std::size_t i = 0; i < as_dealt.size(); ++i) numbers[order[i]] = as_dealt[i];

  std::vector<std::vector<CheckNumber>> results(claims.size());
  for (std::size_t c = 0; c < claims.size(); ++c)
    for (const std::size_t place : wanted[c]) results[c].push_back(numbers[place]);
  return results;
}

}  // namespace gradflow
