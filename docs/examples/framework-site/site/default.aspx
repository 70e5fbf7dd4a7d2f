<%@ Page Language="C#" %>
<!doctype html>
<title>A site of .NET Framework</title>
<h1>It works, on <%= Environment.Version %></h1>
