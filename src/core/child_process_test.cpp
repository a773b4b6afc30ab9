#include "core/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

namespace gradflow {
namespace {

TEST(ChildProcess, AnswersMessageByMessage) {
  ChildProcess child([](Channel& channel) {
    while (const auto message = channel.receive()) channel.send(*message + *message);
  });
  const std::string large(90'000, 'x');
  ASSERT_TRUE(child.channel().send("a"));
  ASSERT_TRUE(child.channel().send("bc"));
  EXPECT_EQ(child.channel().receive(), "aa");
  EXPECT_EQ(child.channel().receive(), "bcbc");
  ASSERT_TRUE(child.channel().send(large));
  EXPECT_EQ(child.channel().receive(), large + large);
  child.channel().close_sending();
  EXPECT_EQ(child.channel().receive(), std::nullopt);
  EXPECT_TRUE(child.wait().good());
}

TEST(ChildProcess, ItsEndIsKnown) {
  ChildProcess good([](Channel&) {});
  ChildProcess bad([](Channel&) { throw std::runtime_error("no"); });
  ChildProcess killed([](Channel& channel) { channel.receive(); });
  EXPECT_EQ(good.channel().receive(), std::nullopt);
  EXPECT_TRUE(good.wait().good());
  EXPECT_EQ(bad.wait().words(), "exit code 1");
  killed.send_signal(SIGKILL);
  EXPECT_EQ(killed.channel().receive(), std::nullopt);
  EXPECT_FALSE(killed.channel().send("too late"));
  EXPECT_EQ(killed.wait().words(), "signal 9 (Killed)");
}

TEST(ChildProcess, AYoungerOneDoesNotHoldTheChannelOfAnElderOpen) {
  ChildProcess elder([](Channel& channel) {
    while (channel.receive()) continue;
  });
  ChildProcess younger([](Channel& channel) { channel.receive(); });
  elder.channel().close_sending();
  EXPECT_TRUE(elder.wait().good());
}

TEST(ChildProcess, IsKilledWithItsObject) {
  pid_t pid = 0;
  {
    ChildProcess child([](Channel&) { pause(); });
    pid = child.pid();
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(ChildProcess, DiesWithItsParent) {
  // The grandchild tells its number; then its parent is killed, and the channel that only the grandchild holds closes.
  ChildProcess parent([](Channel& channel) {
    ChildProcess child([&](Channel&) {
      channel.send(std::to_string(getpid()));
      pause();
    });
    pause();
  });
  const auto grandchild = parent.channel().receive();
  ASSERT_TRUE(grandchild);
  parent.send_signal(SIGKILL);
  parent.wait();
  EXPECT_EQ(parent.channel().receive(), std::nullopt) << "nobody is left who could send";
}

}  // namespace
}  // namespace gradflow
